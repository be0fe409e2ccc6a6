// A refusal of the API, shown as it is, and what it means.

import { Problem, Unreachable } from './api.js';
import { h, replace } from './dom.js';

/** What is asked for isn't there: it never was, or it was deleted. Other answers with this status are of something else. */
export const isMissing = (error) => error instanceof Problem && error.status === 404 && error.code === 'not_found';

/** What a failed call says about the system, in a sentence. */
export function meaning(error) {
  if (error instanceof Unreachable) return 'The API doesn’t answer.';
  if (isMissing(error)) return 'There is nothing with this id.';
  if (error.status === 401) return 'The server doesn’t know who asks: the page’s credentials are missing, wrong or expired.';
  if (error.status === 403) return 'The server refuses this to whom the page’s credentials belong.';
  if (error.status === 0) return 'The browser can’t ask for this.';
  if (error.status === 408 || error.status === 429) return 'The server has too much to do.';
  if (error.status >= 500) return 'The server has failed, whatever is asked for.';
  if (error.status >= 400) return 'The server doesn’t accept what this page asks for.';
  return 'The answer isn’t one of Tickover.';
}

/** Why a record isn't shown as it is now. Only one that was deleted is gone. */
export const outdated = (error) => [problem(error), h('p', {}, isMissing(error) ? 'It was deleted meanwhile. What follows is its last known state.' : 'What follows may be old.')];

/** Shows a refusal instead of a view's data, with advice if there is no such record. Returns whether it was one. */
export function refused(root, answer, ...advice) {
  if (!(answer instanceof Problem)) return false;
  replace(root, problem(answer), isMissing(answer) ? advice : null);
  return true;
}

/** What a refusal means, with the server's own title, detail and code. */
export function problem(error) {
  const { title, detail, message, code, field, status } = error;
  return h('div', { class: 'problem', role: 'alert' },
    h('p', {}, h('strong', {}, meaning(error))),
    h('p', {}, title ? `${title}: ` : '', detail || (message === title ? '' : message)),
    h('p', { class: 'quiet' }, `code ${code ?? 'unreachable'}`, status ? `, status ${status}` : '', field ? `, field ${field}` : ''));
}

// A refusal of the API, shown as it is.

import { Problem } from './api.js';
import { h, replace } from './dom.js';

/** Shows a refusal instead of a view's data. Returns whether it was one. */
export function refused(root, answer, ...advice) {
  if (!(answer instanceof Problem)) return false;
  replace(root, problem(answer), advice);
  return true;
}

/** Title, detail and code of a refusal. */
export function problem({ title, detail, message, code, field }) {
  return h('div', { class: 'problem', role: 'alert' },
    h('p', {}, h('strong', {}, title ?? 'No answer')),
    h('p', {}, detail || message),
    h('p', { class: 'quiet' }, `code ${code ?? 'unreachable'}`, field ? `, field ${field}` : ''));
}

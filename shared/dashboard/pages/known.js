// Which workflows there are. The API lists executions of one workflow at a time, so the page must know their names: from
// the workers' announcements, and from what this browser has seen.

import { get } from './api.js';

const KEY = 'tickover.workflows';

function stored() {
  try {
    const names = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
  } catch {
    return [];
  }
}

/** Remembers a workflow's name in this browser, the last 50 of them. */
export function remember(workflow) {
  const names = stored();
  if (!workflow || names[0] === workflow) return;
  try {
    localStorage.setItem(KEY, JSON.stringify([workflow, ...names.filter((name) => name !== workflow)].slice(0, 50)));
  } catch {
    // Without storage it isn't remembered.
  }
}

/** Forgets a workflow, if it has no executions. */
export function forget(workflow) {
  try {
    localStorage.setItem(KEY, JSON.stringify(stored().filter((name) => name !== workflow)));
  } catch {
    // As above.
  }
}

/** All known names, sorted. */
export async function workflows(signal, queues = null) {
  const listed = queues ?? (await get(['queues'], {}, signal)).queues;
  return [...new Set([...listed.flatMap((queue) => queue.workflows ?? []), ...stored()])].sort();
}

/** The latest executions of all these workflows, the latest first. Each list is asked for its first page only. */
export async function latest(names, query, signal) {
  const pages = await Promise.all(names.map((workflow) => get(['executions'], { ...query, workflow }, signal)));
  const executions = pages.flatMap((page) => page.executions);
  executions.sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at));
  return { executions, hasMore: pages.some((page) => page.cursor) };
}

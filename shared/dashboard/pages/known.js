// Which workflows there are. Most deployments on AWS list the executions of one workflow at a time, so there the page must
// know their names: from the workers' announcements, and from what this browser has seen.

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

/** What the system itself counts: its workflows with the number of executions of each status. `null` where it doesn't. */
export let counted = null;
/** Of which executions: whether all, how many were read for it where the system keeps no counts, and when. */
export let count = { complete: true };
/** Counting without kept counts reads up to 1,000 executions, so it isn't repeated more often than this. */
const COUNT_EVERY_MS = 60_000;
let isCounting = true;
let countedAt = -COUNT_EVERY_MS;
/** Whether the system lists the executions of all workflows. It says so if it doesn't. */
export let listed = true;

export const OPEN = ['pending', 'running', 'waiting', 'paused'];
/** Executions with these statuses are listed everywhere, also with one of them. */
export const FAILED = 'failed,timed_out';

async function countNow(signal) {
  if (!isCounting) return null;
  if (count.read !== undefined && performance.now() < countedAt + COUNT_EVERY_MS) return counted;
  try {
    const { workflows, ...rest } = await get(['workflows'], {}, signal);
    [counted, count, countedAt] = [workflows, rest, performance.now()];
  } catch (error) {
    // An earlier version has no such address.
    if (![404, 501].includes(error.status)) throw error;
    isCounting = false;
  }
  return counted;
}

/** How many executions of a workflow, or of all, have one of these statuses, among those that are counted. `null` where none are. */
export function total(statuses, workflow = null) {
  if (!counted) return null;
  const chosen = counted.filter((one) => !workflow || one.workflow === workflow);
  return chosen.reduce((sum, one) => sum + statuses.reduce((count, status) => count + (one.executions[status] ?? 0), 0), 0);
}

/** All known names, sorted. */
export async function workflows(signal, queues = null) {
  const own = (await countNow(signal))?.map((one) => one.workflow);
  if (own && count.complete) return own;
  const listed = queues ?? (await get(['queues'], {}, signal)).queues;
  return [...new Set([...listed.flatMap((queue) => queue.workflows ?? []), ...stored(), ...own ?? []])].sort();
}

/**
 * The latest executions of all these workflows, the latest first: a page of them with its cursor, where the system lists
 * them itself; otherwise each list's first page.
 */
export async function latest(names, query, signal) {
  if (listed || (query.status && FAILED.includes(query.status))) {
    try {
      const { executions, cursor } = await get(['executions'], query, signal);
      return { executions, cursor, hasMore: Boolean(cursor) };
    } catch (error) {
      if (error.field !== 'workflow') throw error;
      listed = false;
    }
  }
  const pages = await Promise.all(names.map((workflow) => get(['executions'], { ...query, workflow }, signal)));
  const executions = pages.flatMap((page) => page.executions);
  executions.sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at));
  return { executions, hasMore: pages.some((page) => page.cursor) };
}

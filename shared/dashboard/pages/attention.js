// How many records wait for somebody: executions that are paused or stuck, and tasks that get no worker.

import { get } from './api.js';
import { latest } from './known.js';

/** How many are counted at most; more are shown as this number and a plus. */
const COUNTED = 200;
/** An answer may have read 3,000 records, so it isn’t asked for more often than this. */
const EVERY_MS = 5000;

let counted = { executions: '?', tasks: '0' };
let countedAt = -EVERY_MS;

/** The numbers as texts, which are of the lists that the tiles lead to. */
export async function attention(names, signal) {
  if (performance.now() < countedAt + EVERY_MS) return counted;
  const query = { stuck: 'true', limit: COUNTED };
  const text = (found, hasMore) => `${found.length}${hasMore ? '+' : ''}`;
  try {
    const [executions, tasks] = await Promise.all([latest(names, query, signal), get(['tasks'], query, signal)]);
    counted = { executions: text(executions.executions, executions.hasMore), tasks: text(tasks.tasks, tasks.cursor) };
  } catch (error) {
    // An earlier version doesn’t know the filter.
    if (error.field !== 'stuck') throw error;
  }
  countedAt = performance.now();
  return counted;
}

// The details of a lane: its entries in words, its errors and results, and the task or the child behind it.

import { get } from '../api.js';
import { badge, facts, h, link, replace, table } from '../dom.js';
import { failure, payload } from '../payload.js';
import { isMissing, problem } from '../problem.js';
import { at, length, millis, near } from '../time.js';
import { errorText, who } from '../words.js';

/** How many entries of a lane are shown, around the chosen one. */
const SHOWN = 50;

/** What an entry says, in words. */
export function inWords(entry) {
  const words = entry.kind.replaceAll('_', ' ');
  const parts = [words];
  if (entry.name) parts.push(entry.name);
  if (entry.event) parts.push(entry.event);
  if (entry.attempt) parts.push(`(attempt ${entry.attempt})`);
  if (entry.attempts > 1) parts.push(`(${entry.attempts} attempts)`);
  if (entry.count) parts.push(`× ${entry.count}`);
  if (entry.worker) parts.push(`by ${entry.worker}`);
  if (entry.by) parts.push(`by ${who(entry.by)}`);
  if (entry.error) parts.push(`– ${errorText(entry.error)}`);
  if (entry.step_error !== undefined) parts.push(`– ${JSON.stringify(entry.step_error).slice(0, 200)}`);
  return parts.join(' ');
}

/** Draws the details of a lane. `chosen` is the entry of the bar that was pressed. */
export function details(root, lane, chosen, startMs) {
  const from = lane.bars[0]?.from ?? lane.marks[0]?.at;
  const to = lane.bars.at(-1)?.to ?? lane.marks.at(-1)?.at;
  const middle = Math.max(lane.entries.indexOf(chosen), 0);
  const first = Math.max(Math.min(middle - SHOWN / 2, lane.entries.length - SHOWN), 0);
  const shown = lane.entries.slice(first, first + SHOWN);
  const behind = h('div');
  replace(root,
    h('h3', {}, lane.kind === lane.name ? lane.name : `${lane.kind} ${lane.name}`),
    facts([
      ['Status', lane.status.replaceAll('_', ' ')],
      ['From', at(iso(from))],
      ['To', lane.status === 'open' || lane.status === 'retrying' ? 'open' : at(iso(to))],
      ['Length', to > from ? length(to - from) : null],
      ['Until', lane.until && lane.status === 'open' ? [at(lane.until), ' (', near(lane.until), ')'] : null],
      ['Where', lane.kind === 'step' && !lane.task ? 'in the turn: its input is the code’s own, and its start is stored for steps with a timeout or a heartbeat, or at most once' : null],
      ['Worker', lane.entries.findLast((entry) => entry.worker)?.worker],
      ['Task', lane.task ? link(['tasks', lane.task]) : null],
      ['Execution', lane.execution ? link(['executions', lane.execution]) : null],
    ]),
    lane.entries.length > SHOWN ? h('p', { class: 'quiet' }, `Entries ${first + 1} to ${first + shown.length} of ${lane.entries.length.toLocaleString()}. The list has all.`) : null,
    h('ol', { class: 'entries' }, shown.map((entry) => h('li', { class: entry === chosen ? 'chosen' : '' },
      at(entry.at), h('span', { class: 'quiet' }, ` +${length(millis(entry.at) - startMs)}`), ` ${inWords(entry)}`,
      entry.duration_ms === undefined ? null : `, ${length(entry.duration_ms)}`,
      entry.until ? [', until ', at(entry.until)] : null,
      payload('Result', entry.output, `${lane.name}-${entry.kind}`, shown.length < 5),
      entry.output_bytes ? h('span', { class: 'quiet' }, ` result of ${entry.output_bytes.toLocaleString()} bytes, stored apart`) : null,
      payload('Error', entry.step_error, `${lane.name}-${entry.kind}`)))),
    behind);
  if (lane.task) fetched(behind, ['tasks', lane.task], ({ task }) => taskDetails(task));
  if (lane.execution) fetched(behind, ['executions', lane.execution], ({ execution }) => childDetails(execution));
}

const iso = (ms) => (ms === undefined ? null : new Date(ms).toISOString());

async function fetched(root, path, draw) {
  try {
    replace(root, draw(await get(path)));
  } catch (error) {
    replace(root, isMissing(error) ? h('p', { class: 'quiet' }, 'Its own record has been deleted.') : problem(error));
  }
}

/** The attempts of a task as a table. */
export function attempts(task) {
  if (task.attempts.length === 0) return h('p', { class: 'quiet' }, 'No worker has claimed it yet.');
  return table('Attempts', ['Attempt', 'Worker', 'Claimed', 'Took', 'Outcome', 'Error'], task.attempts.map((one) => [
    String(one.attempt), one.worker ?? '', at(one.claimed_at) ?? 'never', one.claimed_at && one.ended_at ? length(millis(one.ended_at) - millis(one.claimed_at)) : '',
    one.outcome ? badge(one.outcome) : badge('running'), one.error ? errorText(one.error) : '',
  ]));
}

function taskDetails(task) {
  return [h('h4', {}, 'Its task'), h('p', {}, badge(task.status), ' ', link(['tasks', task.id])), attempts(task), payload('Input', task.input, task.id), payload('Output', task.output, task.id)];
}

function childDetails(execution) {
  return [h('h4', {}, 'The child'), h('p', {}, badge(execution.status), ' ', link(['executions', execution.id])),
    execution.error ? failure(execution.error) : null, payload('Input', execution.input, execution.id), payload('Output', execution.output, execution.id)];
}

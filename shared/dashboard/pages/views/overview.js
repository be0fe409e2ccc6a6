// What waits, runs, failed and is late, live.

import { get, scrape } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, h, link, replace, section, table } from '../dom.js';
import { FAILED, OPEN, count, counted, latest, leases, listed, total, totalText, workflows } from '../known.js';
import { refused } from '../problem.js';
import { length, millis, near, now } from '../time.js';
import { metrics } from '../metrics.js';
import { byEnd, errorText, grouped } from '../words.js';
import { attention } from '../attention.js';
import { day, history } from '../history.js';
import { alarm, unserved, workers as servedBy } from './workers.js';
import { groupAddress, groupName, seen } from './failures.js';

/** How many records are counted at most; more are shown as this number and a plus. */
const COUNTED = 500;
/** Of how many queues the oldest task is asked for. */
const QUEUES_ASKED = 20;
/** How many workers of a queue are named. */
const WORKERS_NAMED = 3;
/** How many depths of a queue are kept for its line. */
const DEPTHS = 60;
/** A task that has waited for a worker for longer is late, in milliseconds. */
const LATE = 60_000;

export function show(page) {
  const depths = new Map();
  let before = null;
  // The first view is drawn without what can come a moment later.
  let isFirst = true;

  const load = async (signal) => {
    const lateBefore = new Date(now() - LATE).toISOString();
    const [{ queues }, pending, old, running, failed, scraped] = await Promise.all([
      get(['queues'], {}, signal),
      get(['tasks'], { status: 'pending', limit: COUNTED }, signal),
      get(['tasks'], { status: 'pending', created_before: lateBefore, limit: COUNTED }, signal),
      get(['tasks'], { status: 'running', limit: COUNTED }, signal),
      get(['tasks'], { status: FAILED, limit: COUNTED }, signal),
      scrape(signal),
    ]);
    const names = await workflows(signal, queues);
    const [asked, live, lost, workers, held, parts] = await Promise.all([
      Promise.all(queues.slice(0, QUEUES_ASKED).map(({ name }) => get(['queues', name], {}, signal).then((answer) => answer.queue))),
      latest(names, { status: OPEN.join(), limit: 200 }, signal),
      latest(names, { status: FAILED, limit: 100 }, signal),
      ...(isFirst ? [[], null, undefined] : [servedBy(signal), attention(names, signal), history(null, signal)]),
    ]);
    return { queues: [...asked, ...queues.slice(QUEUES_ASKED)], pending, old, running, failed, live, lost, names, scraped, workers, held, parts, at: Math.floor(now() / 1000) };
  };

  const draw = (data) => {
    if (refused(page.root, data)) return;
    const measured = metrics(data.scraped);
    for (const { name, depth } of data.queues) depths.set(name, [...(depths.get(name) ?? []), depth].slice(-DEPTHS));
    const rates = before ? rate(before, data, measured) : null;
    before = { at: data.at, measured };
    const isNew = data.queues.length === 0 && data.live.executions.length === 0 && data.failed.tasks.length === 0 && data.lost.executions.length === 0;
    replace(page.root, isNew ? first() : null, alarm(data.workers), numbers(data), failures(data), queueTable(data, depths, rates), isNew || data.parts === undefined ? null : day(data.parts), lateness(measured, data));
    if (isFirst) {
      isFirst = false;
      refresh();
    }
  };

  const refresh = page.live(load, draw, 2000);
}

function first() {
  return empty('Nothing has been scheduled yet. In a shell:',
    h('p', {}, command(commands.schedule('emails', 'welcome', { input: '{"to": "ada@example.com"}' }))), h('p', {}, 'or ', link(['start'], 'start the first task or execution with a form'), '.'));
}

/** The numbers at the top, each a link to its records. */
function numbers({ pending, old, running, failed, live, lost, names, held }) {
  const whole = counted && count.complete;
  const plus = (count, list) => `${count}${list.cursor || list.hasMore ? '+' : ''}`;
  const late = old.tasks.filter(isLate).length + live.executions.filter(isLate).length;
  const tile = (count, label, href, tone = '') => h('a', { class: `tile ${count === '0' ? '' : tone}`, href }, h('span', { class: 'number' }, count), h('span', {}, label));
  const workflowNote = names.length === 0 && !listed ? ' (no workflow is known)' : '';
  return h('div', { class: 'tiles' },
    tile(plus(pending.tasks.length, pending), 'tasks wait', '#/tasks?status=pending'),
    tile(plus(running.tasks.length, running), 'tasks run', '#/tasks?status=running', 'good'),
    tile(totalText(OPEN) ?? plus(live.executions.length, live), `executions are open${workflowNote}`, '#/executions?status=pending%2Crunning%2Cwaiting%2Cpaused', 'good'),
    tile(plus(late, { cursor: old.cursor, hasMore: live.hasMore }), 'are late', '#/tasks?status=pending', 'warn'),
    tile(held?.executions ?? '…', 'executions wait for an operator', '#/executions?stuck=true', 'warn'),
    (held?.tasks ?? '0') === '0' ? null : tile(held.tasks, 'tasks are held back', '#/tasks?stuck=true', 'warn'),
    tile(plus(failed.tasks.length + (whole ? total(FAILED.split(',')) : lost.executions.length), { cursor: failed.cursor, hasMore: !whole && lost.hasMore }), 'failed', '#/failures', 'bad'));
}

/** Whether a worker should have taken it by now. */
function isLate(record) {
  return record.status === 'pending' && record.available_at !== undefined && now() - millis(record.available_at) > LATE;
}

function failures({ failed, lost }) {
  const groups = grouped([...failed.tasks, ...lost.executions]).slice(0, 6);
  const plus = failed.cursor || lost.hasMore ? '+' : '';
  if (groups.length === 0) return section('Last failures', h('p', { class: 'quiet' }, 'Nothing that is kept has failed.'));
  return section('Last failures', table('Last failures', ['What', 'Error', 'Count', 'Rate', 'First', 'Last', 'Message'], groups.map((group) => {
    const last = [...group.records].sort(byEnd)[0];
    const times = seen(group, plus);
    return [h('a', { href: groupAddress(group) }, groupName(group)), group.code, `${group.records.length}${plus}`, times.rate, times.first, times.last, h('span', { class: 'error' }, last.error ? errorText(last.error) : last.status)];
  })));
}

function queueTable({ queues, running, live, workers: known }, depths, rates) {
  if (queues.length === 0) return section('Queues', h('p', { class: 'quiet' }, 'A queue exists after its first task or execution.'));
  const leased = leases([...running.tasks, ...live.executions]);
  const workers = (name) => {
    const queue = known.find((one) => one.queue === name);
    if (queue?.unserved) return unserved(queue);
    const there = (queue?.workers ?? []).filter((worker) => worker.there).map((worker) => worker.name);
    const all = [...new Set([...there, ...leased.get(name)?.workers ?? []])];
    return all.slice(0, WORKERS_NAMED).join(', ') + (all.length > WORKERS_NAMED ? ` and ${all.length - WORKERS_NAMED} more` : '');
  };
  return section('Queues', table('Queues', ['Queue', 'Waiting', 'Depth while this page is open', 'Oldest waits since', 'With workers', 'Later', 'Ended', 'Workers seen'], queues.map((queue) => [
    [link(['queues'], queue.name, { 'data-key': `queue ${queue.name}` }), queue.paused ? [' ', badge('paused')] : null], String(queue.depth), line(depths.get(queue.name) ?? [], queue.name),
    queue.oldest_at ? near(queue.oldest_at) : '', String(Math.max(queue.in_flight, leased.get(queue.name)?.count ?? 0)), String(queue.delayed), rates?.get(queue.name) ?? '',
    workers(queue.name),
  ])), h('p', { class: 'quiet' }, link(['workers'], 'Workers'), ' are those that asked for work in the last minutes, or have some now. A queue’s numbers count messages, and are approximate.'));
}

/** A line of a queue's depth, one column for each time it was read. */
function line(values, name) {
  const most = Math.max(...values, 1);
  const columns = values.map((value) => {
    const column = h('i');
    column.style.height = `${Math.max((value / most) * 100, value > 0 ? 8 : 2)}%`;
    return column;
  });
  return h('span', { class: 'spark', role: 'img', 'aria-label': `depth of ${name}: ${values[0] ?? 0} at first, at most ${Math.max(...values, 0)}, now ${values.at(-1) ?? 0}` }, columns);
}

/** The tasks that ended a minute in each queue, between two readings of the metrics. */
function rate(before, data, measured) {
  const seconds = data.at - before.at;
  if (!measured || !before.measured || seconds <= 0) return null;
  const rates = new Map();
  for (const [queue, count] of measured.endedByQueue) {
    rates.set(queue, `${(((count - (before.measured.endedByQueue.get(queue) ?? 0)) * 60) / seconds).toFixed(0)} / min`);
  }
  return rates;
}

function lateness(measured, { names }) {
  const unknown = names.length === 0 && !listed ? h('p', { class: 'quiet' }, 'Executions are counted for the workflows that workers have announced or that this browser has seen.') : null;
  if (!measured) return section('Lateness of deadlines', h('p', { class: 'quiet' }, 'This system has no metrics at this address. A deployment’s are on its dashboard in CloudWatch.'), unknown);
  if (measured.late.count === 0) return section('Lateness of deadlines', h('p', { class: 'quiet' }, 'No deadline has passed since the server started.'), unknown);
  const { count, within } = measured.late;
  return section('Lateness of deadlines', h('p', {}, `${count} deadlines have passed since the server started. `, within.map(([share, seconds]) => `${share} % of them fired within ${seconds === Infinity ? 'more than the largest measure' : length(seconds * 1000)}. `)), unknown);
}

// What waits, runs, failed and is late, live.

import { get, scrape } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, h, link, replace, section, table } from '../dom.js';
import { day, history } from '../history.js';
import { metrics } from '../metrics.js';
import { refused } from '../problem.js';
import { length, near } from '../time.js';
import { groupAddress, groupName, groupOf, timesOf } from './failures.js';
import { alarm, unserved } from './workers.js';

/** How many depths of a queue are kept for its line. */
const DEPTHS = 60;
/** How often the metrics are read, in milliseconds: they may be larger than all else. */
const SCRAPE_EVERY_MS = 10_000;

export function show(page) {
  const depths = new Map();
  let measured = null;
  let rates = null;
  let scrapedAt = -SCRAPE_EVERY_MS;
  // The first view is drawn without what can come a moment later.
  let isFirst = true;

  /** Reads the metrics, and the rates since the last time. */
  const measure = async (signal) => {
    if (performance.now() < scrapedAt + SCRAPE_EVERY_MS) return;
    const [found, at] = [metrics(await scrape(signal)), performance.now()];
    rates = rate(measured, found, (at - scrapedAt) / 1000);
    [measured, scrapedAt] = [found, at];
  };

  const load = async (signal) => {
    const [seen, lastDay] = await Promise.all([get(['overview'], {}, signal), ...(isFirst ? [] : [history(null, signal), measure(signal)])]);
    return { seen, lastDay };
  };

  const draw = (data) => {
    if (refused(page.root, data)) return;
    const { seen, lastDay } = data;
    for (const { name, depth } of seen.queues) depths.set(name, [...(depths.get(name) ?? []), depth].slice(-DEPTHS));
    const isNew = seen.queues.length === 0 && seen.executions.open.count === 0 && seen.failed.count === 0;
    replace(page.root, isNew ? first() : null, alarm(seen.queues), numbers(seen), failures(seen), queueTable(seen, depths, rates), isNew || lastDay === undefined ? null : day(lastDay), isFirst ? null : lateness(measured));
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

/** A count as text: with a plus, if there may be more. */
const text = ({ count, more }) => `${count}${more ? '+' : ''}`;
const some = ({ count, more }) => count > 0 || more;

/** The numbers at the top, each a link to its records. */
function numbers({ tasks, executions, failed }) {
  const tile = (count, label, href, tone = '') => h('a', { class: `tile ${count.count === 0 ? '' : tone}`, href }, h('span', { class: 'number' }, text(count)), h('span', {}, label));
  const note = executions.announced_only ? h('p', { class: 'quiet' }, 'Executions are counted for the workflows that workers have announced.') : null;
  return [h('div', { class: 'tiles' },
    tile(tasks.pending, 'tasks wait', '#/tasks?status=pending'),
    tile(tasks.running, 'tasks run', '#/tasks?status=running', 'good'),
    tile(executions.open, 'executions are open', '#/executions?status=pending%2Crunning%2Cwaiting%2Cpaused', 'good'),
    tile(tasks.late, 'tasks are late', '#/tasks?status=pending', 'warn'),
    some(executions.late) ? tile(executions.late, 'executions are late', '#/executions?status=pending', 'warn') : null,
    tile(executions.stuck, 'executions wait for an operator', '#/executions?stuck=true', 'warn'),
    some(tasks.stuck) ? tile(tasks.stuck, 'tasks are held back', '#/tasks?stuck=true', 'warn') : null,
    tile(failed, 'failed', '#/failures', 'bad')), note];
}

/** The largest groups of failures. */
function failures({ failures: groups, more_failures: more, failed }) {
  if (groups.length === 0) return section('Last failures', h('p', { class: 'quiet' }, 'Nothing that is kept has failed.'));
  const rows = groups.map((found) => {
    const group = groupOf(found);
    const { first, last, rate } = timesOf(group, failed.more);
    return [h('a', { href: groupAddress(group) }, groupName(group)), group.code, text({ ...found, more: failed.more }), rate, first, last, h('span', { class: 'error' }, found.message ?? '')];
  });
  return section('Last failures', table('Last failures', ['What', 'Error', 'Count', 'Rate', 'First', 'Last', 'Message'], rows), more ? h('p', { class: 'quiet' }, 'There are more groups: ', link(['failures'], 'all failures'), '.') : null);
}

function queueTable({ queues, more_queues: more }, depths, rates) {
  if (queues.length === 0) return section('Queues', h('p', { class: 'quiet' }, 'A queue exists after its first task or execution.'));
  const workers = (queue) => (queue.unserved ? unserved(queue) : (queue.workers ?? []).join(', ') + (queue.more_workers ? ` and ${queue.more_workers} more` : ''));
  return section('Queues', table('Queues', ['Queue', 'Waiting', 'Depth while this page is open', 'Oldest waits since', 'With workers', 'Later', 'Ended', 'Workers seen'], queues.map((queue) => [
    [link(['queues'], queue.name, { 'data-key': `queue ${queue.name}` }), queue.paused ? [' ', badge('paused')] : null], String(queue.depth), line(depths.get(queue.name) ?? [], queue.name),
    queue.oldest_at ? near(queue.oldest_at) : '', String(queue.in_flight), String(queue.delayed), rates?.get(queue.name) ?? '',
    workers(queue),
  ])), h('p', { class: 'quiet' }, more ? ['These are the first 50 by name: ', link(['queues'], 'all queues'), '. '] : null, link(['workers'], 'Workers'), ' are those that asked for work in the last 3 minutes. A queue’s numbers count messages, and are approximate. The same in a shell: ', command(commands.overview())));
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
function rate(before, after, seconds) {
  if (!before || !after) return null;
  const rates = new Map();
  for (const [queue, count] of after.endedByQueue) {
    rates.set(queue, `${(((count - (before.endedByQueue.get(queue) ?? 0)) * 60) / seconds).toFixed(0)} / min`);
  }
  return rates;
}

function lateness(measured) {
  if (!measured) return section('Lateness of deadlines', h('p', { class: 'quiet' }, 'This system has no metrics at this address. A deployment’s are on its dashboard in CloudWatch.'));
  if (measured.late.count === 0) return section('Lateness of deadlines', h('p', { class: 'quiet' }, 'No deadline has passed since the server started.'));
  const { count, within } = measured.late;
  return section('Lateness of deadlines', h('p', {}, `${count} deadlines have passed since the server started. `, within.map(([share, seconds]) => `${share} % of them fired within ${seconds === Infinity ? 'more than the largest measure' : length(seconds * 1000)}. `)));
}

// Operations on many records, or one of them.

import { get } from '../api.js';
import { command, panel } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, facts, h, link, replace, section, table } from '../dom.js';
import { PAGE, pages } from '../lists.js';
import { payload } from '../payload.js';
import { refused } from '../problem.js';
import { both, length, millis, near, now } from '../time.js';
import { who } from '../words.js';

const what = (one) => `${one.action.replaceAll('_', ' ')}${one.dry_run ? ' (only counts)' : ''}`;
const refusals = (one) => Object.entries(one.refused ?? {}).map(([code, count]) => `${count} ${code}`).join(', ');

const isOpen = (one) => one.status === 'running' || one.status === 'stopping';
const sum = (one) => Object.values(one.refused ?? {}).reduce((all, count) => all + count, 0);
/** How many of its records are done: listed ids without a record too. */
const done = (one) => Math.max(one.matched + (one.refused?.not_found ?? 0), one.changed + one.unchanged + sum(one));

/** How far it has come: a bar, the share, what is left, and the rate since `first`, an earlier state of it. */
function progress(one, first) {
  const count = done(one);
  const total = one.total === undefined ? null : Math.max(one.total, count);
  const seconds = (now() - first.at) / 1000;
  const rate = isOpen(one) && seconds > 0 ? (count - first.count) / seconds : 0;
  const left = total === null ? null : total - count;
  const texts = [
    total === null ? `${count.toLocaleString()} done, of an unknown number` : `${count.toLocaleString()} of ${total.toLocaleString()} done, ${left.toLocaleString()} left`,
    rate > 0 ? `${rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString()} a second` : null,
    rate > 0 && left > 0 ? `about ${length((left / rate) * 1000)} to go` : null,
  ];
  const bar = total === null ? (isOpen(one) ? {} : null) : { value: count, max: Math.max(total, 1) };
  return h('p', { class: 'progress' }, bar && h('progress', { 'aria-label': 'Progress', ...bar }), ' ', texts.filter(Boolean).join('; '), '.');
}

export function show(page) {
  return page.id === undefined ? all(page) : one(page);
}

function all(page) {
  const load = (signal) => get(['operations'], { limit: PAGE, cursor: page.query.cursor }, signal);
  const draw = (data) => {
    if (refused(page.root, data)) return;
    if (data.operations.length === 0 && !page.query.cursor) {
      replace(page.root, empty('There is no operation on many records yet. The lists and the failures start one, or a shell:', command(commands.many('executions', 'retry', { workflow: 'my-workflow' }))));
      return;
    }
    replace(page.root, table('Operations', ['Operation', 'What', 'Status', 'Found', 'Of', 'Changed', 'Left', 'Refused', 'Since'], data.operations.map((one) => [
      link(['operations', one.id], one.id, { class: 'id', 'data-key': one.id }), what(one), badge(one.status), String(one.matched), one.total === undefined ? '' : String(one.total), String(one.changed), String(one.unchanged), refusals(one), near(one.created_at),
    ])), pages(page, data.cursor), h('p', { class: 'quiet' }, 'The same in a shell: ', command(commands.listOperations())));
  };
  page.live(load, draw, 2000);
}

function one(page) {
  // Since when it is watched, or went on.
  let first = null;
  const load = (signal) => get(['operations', page.id], {}, signal);
  const draw = (data) => {
    if (refused(page.root, data, h('p', {}, link(['operations'], 'All operations')))) return;
    const { operation } = data;
    if (!isOpen(operation)) first = null;
    else if (first === null) first = operation.matched === 0 ? { at: millis(operation.created_at), count: 0 } : { at: now(), count: done(operation) };
    replace(page.root,
      h('div', { class: 'state' },
        h('p', { role: 'status' }, badge(operation.status), ` ${what(operation)}: ${operation.matched} found, ${operation.changed} changed.`),
        operation.dry_run ? null : progress(operation, first ?? { at: now(), count: done(operation) }),
        operation.message ? h('p', { class: 'error' }, operation.message) : null,
        facts([['Left as they were', String(operation.unchanged)], ['Refused', refusals(operation)], ['Asked for', both(operation.created_at)], ['Asked for by', who(operation.by)], ['Stopped by', who(operation.stopped_by)], ['Ended', both(operation.ended_at)]])),
      section('Calls', panel('operation', operation, refresh)),
      section('What was asked for', payload('Executions', operation.executions, operation.id), payload('Tasks', operation.tasks, operation.id), payload('Event', operation.event, operation.id)),
      section('In a shell', h('p', {}, command(commands.showOperation(operation.id)))));
  };
  const refresh = page.live(load, draw, 1000);
}

// Operations on many records, or one of them.

import { get } from '../api.js';
import { command, panel } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, facts, h, link, replace, section, table } from '../dom.js';
import { PAGE, pages } from '../lists.js';
import { payload } from '../payload.js';
import { refused } from '../problem.js';
import { both, near } from '../time.js';
import { who } from '../words.js';

const what = (one) => `${one.action.replaceAll('_', ' ')}${one.dry_run ? ' (only counts)' : ''}`;
const refusals = (one) => Object.entries(one.refused ?? {}).map(([code, count]) => `${count} ${code}`).join(', ');

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
    replace(page.root, table('Operations', ['Operation', 'What', 'Status', 'Found', 'Changed', 'Left', 'Refused', 'Since'], data.operations.map((one) => [
      link(['operations', one.id], one.id, { class: 'id', 'data-key': one.id }), what(one), badge(one.status), String(one.matched), String(one.changed), String(one.unchanged), refusals(one), near(one.created_at),
    ])), pages(page, data.cursor), h('p', { class: 'quiet' }, 'The same in a shell: ', command(commands.listOperations())));
  };
  page.live(load, draw, 2000);
}

function one(page) {
  const load = (signal) => get(['operations', page.id], {}, signal);
  const draw = (data) => {
    if (refused(page.root, data, h('p', {}, link(['operations'], 'All operations')))) return;
    const { operation } = data;
    const isRunning = operation.status === 'running' || operation.status === 'stopping';
    replace(page.root,
      h('div', { class: 'state' },
        h('p', { role: 'status' }, badge(operation.status), ` ${what(operation)}: ${operation.matched} found, ${operation.changed} changed.`, isRunning ? [' ', h('progress', { 'aria-label': 'Under way' })] : null),
        operation.message ? h('p', { class: 'error' }, operation.message) : null,
        facts([['Left as they were', String(operation.unchanged)], ['Refused', refusals(operation)], ['Asked for', both(operation.created_at)], ['Asked for by', who(operation.by)], ['Stopped by', who(operation.stopped_by)], ['Ended', both(operation.ended_at)]])),
      section('Calls', panel('operation', operation, refresh)),
      section('What was asked for', payload('Executions', operation.executions, operation.id), payload('Tasks', operation.tasks, operation.id), payload('Event', operation.event, operation.id)),
      section('In a shell', h('p', {}, command(commands.showOperation(operation.id)))));
  };
  const refresh = page.live(load, draw, 1000);
}

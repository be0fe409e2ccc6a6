// Executions of one workflow, or the latest of all known ones.

import { get } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, h, link, replace, table } from '../dom.js';
import { forget, latest, remember, workflows } from '../known.js';
import { PAGE, choice, errorCell, idCell, matches, pages, rowFilter, startedCell } from '../lists.js';
import { refused } from '../problem.js';
import { millis, now } from '../time.js';
import { nextShort } from '../words.js';

const LIVE = 'pending,running,waiting,paused';
const STATUSES = [
  ['', 'Any status'], [LIVE, 'Open'], ['failed,timed_out', 'Failed only'], ['pending', 'Pending'], ['running', 'Running'], ['waiting', 'Waiting'],
  ['paused', 'Paused'], ['completed', 'Completed'], ['failed', 'Failed'], ['timed_out', 'Timed out'], ['cancelled', 'Cancelled'],
];
const SINCE = [['', 'Any time'], ['1', 'Last hour'], ['24', 'Last 24 hours'], ['168', 'Last 7 days']];

export function show(page) {
  const { workflow = '', status = '', since = '', cursor } = page.query;
  let shown = null;

  const load = async (signal) => {
    const names = await workflows(signal);
    const query = { status, limit: PAGE };
    if (!workflow) return { names, ...(names.length > 0 ? await latest(names, query, signal) : { executions: [] }) };
    const list = await get(['executions'], { ...query, workflow, cursor }, signal);
    if (list.executions.length > 0) remember(workflow);
    else if (!status && !cursor && !names.includes(workflow)) forget(workflow);
    return { names, ...list };
  };

  const draw = (data) => {
    if (refused(page.root, data)) return;
    shown = data;
    const isYoung = (one) => !since || millis(one.created_at) >= now() - Number(since) * 3_600_000;
    const rows = data.executions.filter((one) => isYoung(one) && matches(one, page.rows));
    replace(page.root, filters(data.names), counts(rows), list(rows), pages(page, data.cursor), limits(data));
  };

  function filters(names) {
    const all = workflow && !names.includes(workflow) ? [workflow, ...names] : names;
    const other = h('input', { id: 'other-workflow', autocomplete: 'off', spellcheck: 'false' });
    const typed = (event) => {
      event.preventDefault();
      if (other.value.trim()) page.requery({ workflow: other.value.trim(), cursor: null });
    };
    return h('div', { class: 'filters' },
      choice('workflow', 'Workflow', [['', 'All known'], ...all.map((name) => [name, name])], workflow, (value) => page.requery({ workflow: value, cursor: null })),
      choice('status', 'Status', STATUSES, status, (value) => page.requery({ status: value, cursor: null })),
      choice('since', 'Started', SINCE, since, (value) => page.requery({ since: value, cursor: null })),
      rowFilter(page, () => draw(shown)),
      h('form', { class: 'field', onsubmit: typed }, h('label', { for: 'other-workflow' }, 'Another workflow'), h('span', { class: 'joined' }, other, h('button', {}, 'Show'))));
  }

  function list(rows) {
    if (rows.length > 0) {
      return table('Executions', ['Execution', 'Workflow', 'Status', 'Next', 'Started', 'Error'], rows.map((one) => [
        idCell(one), link(['executions'], one.workflow, { href: `#/executions?workflow=${encodeURIComponent(one.workflow)}` }), badge(one.status), nextShort(one), startedCell(one), errorCell(one),
      ]));
    }
    if (status || since || cursor || page.rows) return empty('No execution matches these filters on this page.');
    return empty(workflow ? `There is no execution of ${workflow}.` : 'No workflow is known yet.',
      h('p', {}, 'Start the first one ', link(['start'], 'with a form'), ', or in a shell:'),
      command(commands.start(workflow || 'my-workflow', { input: '{"number": 7}' })));
  }

  page.live(load, draw, 3000);

  /** What this list can't show, and why. */
  function limits(data) {
    if (workflow) return h('p', { class: 'quiet' }, 'The same in a shell: ', command(commands.listExecutions(workflow)));
    const more = data.hasMore ? `These are the latest ${PAGE} of each workflow: choose one to see all of its executions. ` : '';
    return h('p', { class: 'quiet' }, more, 'The API lists executions of one workflow at a time. Known workflows are those that workers have announced, and those that were shown in this browser; type the name of another one above.');
  }
}

function counts(rows) {
  const by = new Map();
  for (const row of rows) by.set(row.status, (by.get(row.status) ?? 0) + 1);
  return h('p', { class: 'counts' }, `${rows.length} shown`, [...by].sort().map(([status, count]) => [' ', badge(status), ` ${count}`]));
}

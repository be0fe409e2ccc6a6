// Executions of one workflow, or of all; where the system can't list those, the latest of all known workflows.

import { Problem, get } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, h, link, replace, table } from '../dom.js';
import { FAILED, OPEN, count, counted, forget, latest, listed, remember, total, workflows } from '../known.js';
import { ENDED, PAGE, choice, endChoice, endedFrom, errorCell, finder, hoursAgo, idCell, labelsCell, matches, pages, rowFilter, startedCell, statusCell } from '../lists.js';
import { allThatMatch } from '../many.js';
import { problem } from '../problem.js';
import { at } from '../time.js';
import { nextShort } from '../words.js';

const STATUSES = [
  ['', 'Any status'], [OPEN.join(), 'Open'], [FAILED, 'Failed only'], ['pending', 'Pending'], ['running', 'Running'], ['waiting', 'Waiting'],
  ['paused', 'Paused'], ['completed', 'Completed'], ['failed', 'Failed'], ['timed_out', 'Timed out'], ['cancelled', 'Cancelled'],
];

export function show(page) {
  const { workflow = '', status = '', since = '', from = '', label = '', error = '', stuck = '', id_prefix = '', cursor } = page.query;
  const ended = () => endedFrom(page.query);
  const isFiltered = Boolean(status || since || from || label || error || stuck || id_prefix || ended() || cursor);
  let shown = null;
  /** The instant from which on they are listed: it moves with the time. Further pages keep that of the first one. */
  const startedFrom = () => (since && !cursor ? hoursAgo(since) : from);
  const everything = all();

  const load = async (signal) => {
    const names = await workflows(signal);
    const query = { status, label, error, started_from: startedFrom(), stuck, id_prefix, ended_from: ended(), limit: PAGE };
    if (!workflow) return { names, from: query.started_from, ended_from: query.ended_from, ...await latest(names, { ...query, cursor }, signal) };
    const list = await get(['executions'], { ...query, workflow, cursor }, signal);
    if (list.executions.length > 0) remember(workflow);
    else if (!isFiltered && !names.includes(workflow)) forget(workflow);
    return { names, from: query.started_from, ended_from: query.ended_from, ...list };
  };

  const draw = (data) => {
    if (data instanceof Problem) {
      // What is wrong can be changed where it was typed.
      replace(page.root, filters(shown?.names ?? []), problem(data));
      return;
    }
    shown = data;
    const rows = data.executions.filter((one) => matches(one, page.rows));
    replace(page.root, filters(data.names), counts(rows, workflow), list(rows), pages(page, data.cursor, { from: data.from, ended_from: data.ended_from }), limits(data), everything);
  };

  function filters(names) {
    const all = workflow && !names.includes(workflow) ? [workflow, ...names] : names;
    return h('div', { class: 'filters' },
      choice('workflow', 'Workflow', [['', listed ? 'All' : 'All known'], ...all.map((name) => [name, name])], workflow, (value) => page.requery({ workflow: value, cursor: null })),
      choice('status', 'Status', STATUSES, status, (value) => page.requery({ status: value, cursor: null })),
      choice('since', 'Started', ENDED, since, (value) => page.requery({ since: value, from: null, cursor: null })),
      endChoice(page),
      choice('stuck', 'Needs an operator', [['', 'Any'], ['true', 'Paused or stuck']], stuck, (value) => page.requery({ stuck: value, cursor: null })),
      finder(page, 'label', 'Label', 'name=value', label),
      finder(page, 'error', 'Error code', 'card_declined', error),
      rowFilter(page, () => (shown ? draw(shown) : null)),
      counted ? null : finder(page, 'workflow', 'Another workflow', '', ''));
  }

  /** Calls on all that match, wherever they are in the list. */
  function all() {
    if (!(workflow || status || label || error) || stuck || id_prefix) return null;
    const statuses = status ? status.split(',') : [];
    const live = status ? statuses.every((one) => OPEN.includes(one)) : null;
    return allThatMatch(page, 'executions', () => ({ workflow, status: statuses, label, error, started_from: startedFrom(), ended_from: ended() }), live);
  }

  function list(rows) {
    if (rows.length > 0) {
      return table('Executions', ['Execution', 'Workflow', 'Status', 'Next', 'Started', 'Labels', 'Error'], rows.map((one) => [
        idCell(one), link(['executions'], one.workflow, { href: `#/executions?workflow=${encodeURIComponent(one.workflow)}` }), statusCell(one), nextShort(one), startedCell(one), labelsCell(one), errorCell(one),
      ]));
    }
    if (isFiltered || page.rows) return empty('No execution matches these filters on this page.');
    return empty(workflow ? `There is no execution of ${workflow}.` : 'No workflow is known yet.',
      h('p', {}, 'Start the first one ', link(['start'], 'with a form'), ', or in a shell:'),
      command(commands.start(workflow || 'my-workflow', { input: '{"number": 7}' })));
  }

  page.live(load, draw, 3000);

  /** What this list can't show, and why. */
  function limits(data) {
    if (workflow || listed) {
      const only = status.includes(',') ? '' : status;
      return h('p', { class: 'quiet' }, howCounted(), 'The same in a shell: ', command(commands.listExecutions(workflow, { status: only, label, error, from: data.from, ended_from: data.ended_from, stuck, id_prefix })));
    }
    const more = data.hasMore && !data.cursor ? `These are the latest ${PAGE} of each workflow: choose one to see all of its executions. ` : '';
    return h('p', { class: 'quiet' }, more, 'Of all workflows, this system lists only failed executions. With TICKOVER_LISTS=all it lists all, for one write more for each, and counts the latest 1,000. Known are workflows that workers have announced or this browser has shown; type another one above.');
  }
}

/** How many there are of each status, by the system's own count or among those that are shown. */
function counts(rows, workflow) {
  const among = (status) => total([status], workflow) ?? rows.filter((row) => row.status === status).length;
  const by = [...OPEN, 'completed', 'failed', 'timed_out', 'cancelled'].map((status) => [status, among(status)]);
  const found = by.filter(([, number]) => number > 0).map(([status, number]) => [' ', badge(status), ` ${number}`]);
  const what = count.complete ? '. In all:' : `. Of the latest ${count.read}:`;
  return h('p', { class: 'counts' }, `${rows.length} shown`, counted ? what : '', found);
}

/** How far the counts can be relied on, where the system doesn't keep them. */
function howCounted() {
  if (!counted) return 'Only those that are shown are counted: to count all would cost each change a write. ';
  if (count.read === undefined) return '';
  return [`${count.complete ? `All ${count.read}` : `Only the latest ${count.read}`} executions are counted, once a minute, as of `, at(count.as_of), '. '];
}

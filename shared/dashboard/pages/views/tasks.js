// Tasks: those that need attention, or those of a status.

import { Problem, get } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { address, empty, h, link, replace, table } from '../dom.js';
import { PAGE, choice, endChoice, endedFrom, errorCell, finder, idCell, labelsCell, matches, pages, rowFilter, startedCell, statusCell } from '../lists.js';
import { allThatMatch } from '../many.js';
import { problem } from '../problem.js';
import { nextShort } from '../words.js';

const STATUSES = [
  ['', 'Open and failed'], ['pending,running', 'Open'], ['failed,timed_out', 'Failed only'], ['pending', 'Pending'], ['running', 'Running'],
  ['failed', 'Failed'], ['timed_out', 'Timed out'], ['any', 'Any status'], ['completed', 'Completed'], ['cancelled', 'Cancelled'], ['skipped', 'Skipped'],
];
const LIVE = ['pending', 'running'];
/** Tasks with these statuses are in no index. */
const SCANNED = ['any', 'completed', 'cancelled', 'skipped'];

export function show(page) {
  const { queue = '', status = '', kind = '', label = '', error = '', stuck = '', id_prefix = '', cursor } = page.query;
  const ended = () => endedFrom(page.query);
  const isFiltered = Boolean(queue || status || kind || label || error || stuck || id_prefix || ended() || cursor);
  let shown = null;
  const statuses = status.split(',').filter(Boolean);
  const live = statuses.length > 0 ? LIVE.includes(statuses[0]) : null;
  const isSelected = queue || kind || label || error || (status && !SCANNED.includes(status));
  const everything = isSelected && !SCANNED.includes(status) && !stuck && !id_prefix ? allThatMatch(page, 'tasks', () => ({ queue, kind, label, error, ended_from: ended(), status: statuses }), live) : null;
  /** Without a status, those that need attention; but of an end, all that have ended, and of what is stuck, all of that. */
  const asked = status === 'any' || (!status && (stuck || ended())) ? '' : status || 'pending,running,failed,timed_out';

  const load = async (signal) => {
    const ended_from = ended();
    const [{ queues }, list] = await Promise.all([
      get(['queues'], {}, signal),
      get(['tasks'], { queue, status: asked, kind, label, error, stuck, id_prefix, ended_from, limit: PAGE, cursor }, signal),
    ]);
    return { names: queues.map((one) => one.name), ended_from, ...list };
  };

  const draw = (data) => {
    if (data instanceof Problem) {
      // What is wrong can be changed where it was typed.
      replace(page.root, filters(shown?.names ?? []), problem(data), h('p', {}, link(['tasks'], 'Show all tasks')));
      return;
    }
    shown = data;
    const rows = data.tasks.filter((one) => matches(one, page.rows));
    replace(page.root, filters(data.names),
      SCANNED.includes(status) ? h('p', { class: 'quiet' }, `No index has tasks ${status === 'any' ? 'of all statuses' : `that are ${status}`}: on AWS each page scans a part of the table, and may be empty though others follow.`) : null,
      rows.length > 0
        ? table('Tasks', ['Task', 'Kind', 'Queue', 'Status', 'Attempt', 'Next', 'Scheduled', 'Labels', 'Error'], rows.map((one) => [
          idCell(one), h('a', { href: address(['tasks'], { kind: one.kind }) }, one.kind), one.queue, statusCell(one), String(one.attempt), nextShort(one), startedCell(one), labelsCell(one), errorCell(one),
        ]))
        : none(),
      pages(page, data.cursor, { ended_from: data.ended_from }),
      h('p', { class: 'quiet' }, 'The same in a shell: ', command(commands.listTasks({ queue, status: statuses.length === 1 && status !== 'any' ? status : '', kind, label, error, stuck, id_prefix, ended_from: data.ended_from }))), everything);
  };

  function filters(found) {
    const names = queue && !found.includes(queue) ? [queue, ...found] : found;
    return h('div', { class: 'filters' },
      choice('queue', 'Queue', [['', 'All'], ...names.map((name) => [name, name])], queue, (value) => page.requery({ queue: value, cursor: null })),
      choice('status', 'Status', STATUSES, status, (value) => page.requery({ status: value, cursor: null })),
      endChoice(page),
      choice('stuck', 'Held back', [['', 'Any'], ['true', 'Get no worker']], stuck, (value) => page.requery({ stuck: value, cursor: null })),
      finder(page, 'kind', 'Kind', 'welcome', kind),
      finder(page, 'label', 'Label', 'name=value', label),
      finder(page, 'error', 'Error code', 'card_declined', error),
      rowFilter(page, () => (shown ? draw(shown) : null)));
  }

  function none() {
    if (isFiltered || page.rows) return empty('No task matches these filters on this page.');
    return empty('There is no task that is open or has failed.', h('p', {}, 'Schedule one ', link(['start'], 'with a form'), ', or in a shell:'), command(commands.schedule('emails', 'welcome', { input: '{"to": "ada@example.com"}' })));
  }

  page.live(load, draw, status === 'completed' ? 15_000 : 3000);
}

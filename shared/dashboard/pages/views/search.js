// What a text finds among ids, their beginnings, and labels: everything of one customer, for example.

import { get } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { address, badge, empty, h, replace, section, table } from '../dom.js';
import { latest, workflows } from '../known.js';
import { errorCell, idCell, labelsCell, startedCell } from '../lists.js';
import { refused } from '../problem.js';
import { nextShort } from '../words.js';

/** How many records of each kind are shown. */
const SHOWN = 50;
/** How many pages of a list are read until that many are found: each page reads up to 3,000 records. */
const PAGES = 10;

export function show(page) {
  const text = (page.query.q ?? '').trim();
  const wanted = text.includes('=') ? { label: text } : { id_prefix: text };
  const name = text.includes('=') ? 'label' : 'id';
  page.heading.textContent = text ? `Found by ${name}: ${text}` : 'Search';

  const load = async (signal) => {
    if (!text) return { executions: { found: [] }, tasks: { found: [] } };
    const names = await workflows(signal);
    const [executions, tasks] = await Promise.all([
      some(async (cursor) => { const { executions: found, ...rest } = await latest(names, { ...wanted, limit: SHOWN, cursor }, signal); return { found, ...rest }; }),
      some(async (cursor) => { const { tasks: found, ...rest } = await get(['tasks'], { ...wanted, limit: SHOWN, cursor }, signal); return { found, ...rest }; }),
    ]);
    return { executions, tasks };
  };

  const draw = (data) => {
    if (refused(page.root, data)) return;
    const { executions, tasks } = data;
    if (!text) return replace(page.root, empty('Type an id, its beginning, or a label as name=value into the field at the top.'));
    if (executions.found.length + tasks.found.length === 0) {
      const none = name === 'label' ? 'No execution and no task has this label.' : 'No execution, task or cron has this id, and no execution or task has one that begins so.';
      return replace(page.root, empty(none, h('p', {}, 'It may have been deleted after its retention.')), partly(executions), partly(tasks));
    }
    replace(page.root,
      section('Executions', list('Executions', executions, ['Execution', 'Workflow', 'Status', 'Next', 'Started', 'Labels', 'Error'], (one) => [
        idCell(one), one.workflow, badge(one.status), nextShort(one), startedCell(one), labelsCell(one), errorCell(one),
      ]), more(executions, 'executions', wanted)),
      section('Tasks', list('Tasks', tasks, ['Task', 'Kind', 'Queue', 'Status', 'Next', 'Scheduled', 'Labels', 'Error'], (one) => [
        idCell(one), one.kind, one.queue, badge(one.status), nextShort(one), startedCell(one), labelsCell(one), errorCell(one),
      ]), more(tasks, 'tasks', wanted)),
      h('p', { class: 'quiet' }, 'The same in a shell: ', command(commands.listExecutions('', wanted))),
      h('p', { class: 'quiet' }, command(commands.listTasks(wanted))));
  };

  page.live(load, draw, 5000);
}

/** The first records of a list that fit. Pages in which none fits are skipped. */
async function some(load) {
  let cursor;
  let found = [];
  for (let pages = 0; pages < PAGES; pages += 1) {
    const page = await load(cursor);
    found = [...found, ...page.found];
    cursor = page.cursor;
    if (found.length >= SHOWN || !cursor) return { found, isPart: Boolean(cursor || page.hasMore) };
  }
  return { found, isPart: true };
}

function list(caption, { found }, columns, row) {
  return found.length > 0 ? table(caption, columns, found.map(row)) : h('p', { class: 'quiet' }, 'None.');
}

const partly = ({ isPart }) => (isPart ? h('p', { class: 'quiet' }, 'Not all there is was looked at: there may be more.') : null);

function more({ isPart }, what, wanted) {
  return isPart ? h('p', { class: 'quiet' }, `There may be more: `, h('a', { href: address([what], wanted.label ? { label: wanted.label, status: what === 'tasks' ? 'any' : '' } : wanted) }, `the list of ${what}`), '.') : null;
}

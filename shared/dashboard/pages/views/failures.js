// Failures, grouped by workflow or kind and error; a whole group can be retried.

import { get } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { address, badge, empty, facts, h, link, replace, section, table } from '../dom.js';
import { FAILED } from '../known.js';
import { ENDED, choice, hoursAgo, idCell, startedCell } from '../lists.js';
import { many } from '../many.js';
import { refused } from '../problem.js';
import { local, millis, near, now } from '../time.js';
import { errorText, failure } from '../words.js';

/** Where the server has no index, so many failures may be counted; with more than these, it is asked once a minute. */
const CHEAP = 500;
const EVERY_MS = 60_000;
/** How many records of a group are shown. */
const SHOWN = 100;
/** How many steps are named in a group's name. */
const STEPS_NAMED = 3;

export const groupAddress = (group, period = {}) => address(['failures'], { ...period, group: group.id });

/** A group whose first failure is not older is new. */
const NEW_MS = 3_600_000;

/** When a group’s first and last failures were, how many there were in the last hour, and whether it is new. Of a part of the
 * failures, the first isn’t known. */
export function timesOf({ found: { first_at: first, last_at: last, last_hour: lately } }, isPart) {
  const isNew = millis(first) > now() - NEW_MS;
  return {
    first: isPart ? ['at the latest ', near(first)] : [near(first), isNew ? [' ', h('span', { class: 'badge failed' }, 'new')] : null],
    last: near(last), rate: lately > 0 ? `${lately}${isPart ? '+' : ''} / h` : 'none',
  };
}

/** `workflow order, step charge`, or all the steps that failed with this error. */
export function groupName({ what, of, steps }) {
  const names = [...steps].slice(0, STEPS_NAMED);
  const more = steps.size > names.length ? ` and ${steps.size - names.length} more` : '';
  return `${what === 'task' ? 'task' : 'workflow'} ${of}${names.length > 0 ? `, step${steps.size > 1 ? 's' : ''} ${names.join(', ')}${more}` : ''}`;
}

/** How many a group has, as text. */
const text = ({ found: { count } }, more) => `${count}${more ? '+' : ''}`;

/** What selects a group's records for an operation. */
function selection({ what, of, code, status }, ended) {
  const all = what === 'task' ? { kind: of } : { workflow: of };
  return { ...all, ...(status ? {} : { error: code }), status: status ? [status] : FAILED.split(','), ...ended };
}

/** A group of the API by its key, with the steps that failed. */
export const groupOf = (found) => ({ ...(found.workflow ? failure('execution', found.workflow, found.error) : failure('task', found.kind, found.error)), found, steps: new Set(found.steps) });

export function show(page) {
  const body = page.root;
  const { from, before, since = '', group: wanted } = page.query;
  const period = { from, before, since };
  /** Which ends count; the last hour moves with the time. */
  const ended = () => ({ ...((since || from) && { ended_from: since ? hoursAgo(since) : from }), ...(before && { ended_before: before }) });
  let known = null;
  let readAt = 0;

  const load = async (signal) => {
    if (known?.read_max && known.failed.count > CHEAP && performance.now() < readAt + EVERY_MS) return known;
    const data = await get(['failures'], ended(), signal);
    const group = wanted && data.groups.map(groupOf).find(({ id }) => id === wanted);
    known = group ? { ...data, ...await latestOf(group, signal) } : data;
    readAt = performance.now();
    return known;
  };

  /** The latest of a group. */
  async function latestOf({ what, of, code, status }, signal) {
    const query = { ...ended(), ...(status ? {} : { error: code }), limit: SHOWN };
    if (what === 'task') return { records: (await get(['tasks'], { ...query, kind: of, status: FAILED }, signal)).tasks };
    return { records: (await get(['executions'], { ...query, workflow: of, status: status ?? 'failed' }, signal)).executions };
  }

  const draw = (data) => {
    if (refused(body, data)) return;
    const groups = data.groups.map(groupOf);
    const { more } = data.failed;
    const chosen = wanted ? groups.find(({ id }) => id === wanted) : null;
    const note = h('p', { class: 'quiet' }, more ? `There are more failures: only the latest ${data.read_max.toLocaleString()} tasks and the latest ${data.read_max.toLocaleString()} executions are counted here. The calls on all of a group take the others too. ` : '',
      data.more_groups ? `These are the ${groups.length} largest groups. ` : '', data.read_max && data.failed.count > CHEAP ? 'So many failures are counted once a minute.' : '');
    if (chosen) {
      replace(body, one(chosen, data), note);
    } else if (wanted) {
      replace(body, empty('Nothing of this group has failed any more.', h('p', {}, link(['failures'], 'All failures'))));
    } else if (groups.length === 0) {
      replace(body, periods(), empty(from || since ? 'Nothing that is kept has failed in this time.' : 'Nothing that is kept has failed.', h('p', {}, 'Failures are shown here until the retention has deleted them.')), note);
    } else {
      replace(body, periods(), table('Groups of failures', ['What failed', 'Error', 'Count', 'Rate', 'First', 'Last', 'Message of the last'], groups.map((group) => {
        const { first, last, rate } = timesOf(group, more);
        return [h('a', { href: groupAddress(group, period), 'data-key': group.id }, groupName(group)), group.code, text(group, more), rate, first, last, h('span', { class: 'error' }, group.found.message ?? '')];
      })), note);
    }
    if (!wanted) body.append(h('p', { class: 'quiet' }, 'The same in a shell: ', command(commands.failures(ended()))));
  };

  /** Which failures count: those that ended since then. */
  function periods() {
    const pick = (value) => page.requery({ since: value, from: null, before: null });
    return h('div', { class: 'filters' }, choice('since', 'Failed', ENDED, since, pick),
      from && before ? h('p', {}, `From ${local(millis(from))} to ${local(millis(before))}. `, link(['failures'], 'All of them')) : null);
  }

  function one(group, { failed: { more }, records }) {
    const { first, last, rate } = timesOf(group, more);
    return [
      h('p', {}, link(['failures'], 'All failures'), ` / ${groupName(group)}, error `, h('code', {}, group.code), `: ${text(group, more)}`, from || since ? ' in the chosen time' : ''),
      facts([['First', first], ['Last', last], ['In the last hour', rate]]),
      section('Calls on all of them', many(page, `${group.what}s`, () => selection(group, ended()), { live: false, step: group.steps.size > 0 })),
      section('Records', table('Records', ['Id', 'Status', 'Started', 'Ended', 'Error'], records.map((record) => [
        idCell(record), badge(record.status), startedCell(record), near(record.ended_at), h('span', { class: 'error' }, record.error ? errorText(record.error) : ''),
      ])), records.length < group.found.count ? h('p', { class: 'quiet' }, `The ${records.length} of ${text(group, more)} that began last.`) : null),
    ];
  }

  page.live(load, draw, 5000);
}

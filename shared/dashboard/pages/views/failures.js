// Failures, grouped by workflow or kind and error; a whole group can be retried.

import { get } from '../api.js';
import { address, badge, empty, facts, h, link, replace, section, table } from '../dom.js';
import { FAILED, latest } from '../known.js';
import { ENDED, choice, hoursAgo, idCell, startedCell } from '../lists.js';
import { many } from '../many.js';
import { refused } from '../problem.js';
import { local, millis, near, now } from '../time.js';
import { byEnd, errorText, grouped } from '../words.js';

/** How many failures are read at once. */
const PAGE = 500;
/** How many failures of each list are grouped at most: the page says so if there are more. */
const READ_MAX = 5000;
/** With more than a page of failures, they are read again after this time, in milliseconds. */
const READ_EVERY_MS = 60_000;
/** How many records of a group are shown. */
const SHOWN = 100;
/** How many steps are named in a group's name. */
const STEPS_NAMED = 3;

export const groupAddress = (group, period = {}) => address(['failures'], { ...period, group: group.id });

const HOUR_MS = 3_600_000;
/** A group whose first failure is not older is new. */
const NEW_MS = HOUR_MS;

/** When a record failed. */
const failedAt = (record) => millis(record.ended_at ?? record.created_at);

/** When a group’s first and last failures were, how many there were in the last hour, and whether it is new. Of a part of the
 * failures, the first isn’t known. */
function seen(group, isPart) {
  const all = group.records.map(failedAt);
  const [first, last] = all.reduce(([least, most], at) => [Math.min(least, at), Math.max(most, at)], [Infinity, -Infinity]);
  return timesOf(first, last, all.filter((at) => at > now() - HOUR_MS).length, isPart);
}

/** The same of a group whose times are known, in milliseconds. */
export function timesOf(first, last, lately, isPart) {
  const instant = (ms) => near(new Date(ms).toISOString());
  return {
    first: isPart ? ['at the latest ', instant(first)] : [instant(first), first > now() - NEW_MS ? [' ', h('span', { class: 'badge failed' }, 'new')] : null],
    last: instant(last), rate: lately > 0 ? `${lately}${isPart ? '+' : ''} / h` : 'none',
  };
}

/** `workflow order, step charge`, or all the steps that failed with this error. */
export function groupName({ what, of, steps }) {
  const names = [...steps].slice(0, STEPS_NAMED);
  const more = steps.size > names.length ? ` and ${steps.size - names.length} more` : '';
  return `${what === 'task' ? 'task' : 'workflow'} ${of}${names.length > 0 ? `, step${steps.size > 1 ? 's' : ''} ${names.join(', ')}${more}` : ''}`;
}

/** What selects a group's records for an operation. */
function selection({ what, of, code, status }, { from, before }) {
  const all = what === 'task' ? { kind: of } : { workflow: of };
  return { ...all, ...(status ? {} : { error: code }), status: status ? [status] : FAILED.split(','), ...(from && { ended_from: from }), ...(before && { ended_before: before }) };
}

/** The records of all pages, up to the most that are read. `load` loads a page. */
async function all(load) {
  const records = [];
  let cursor;
  do {
    const page = await load({ status: FAILED, limit: PAGE, cursor });
    records.push(...page.records);
    cursor = page.cursor;
  } while (cursor && records.length < READ_MAX);
  return { records, hasMore: Boolean(cursor) };
}

export function show(page) {
  const body = page.root;
  let known = null;
  let readAt = 0;

  const { from, before, since = '' } = page.query;
  const period = { from, before, since };
  const isWithin = (record) => (!from || failedAt(record) >= millis(from)) && (!before || failedAt(record) < millis(before));

  const load = async (signal) => {
    if (known?.records.length > PAGE && performance.now() < readAt + READ_EVERY_MS) return known;
    const [tasks, executions] = await Promise.all([
      all(async (query) => { const { tasks: records, cursor } = await get(['tasks'], query, signal); return { records, cursor }; }),
      all(async (query) => { const { executions: records, cursor } = await latest([], query, signal); return { records, cursor }; }),
    ]);
    known = { records: [...tasks.records, ...executions.records], hasMore: tasks.hasMore || executions.hasMore };
    readAt = performance.now();
    return known;
  };

  const draw = (data) => {
    if (refused(body, data)) return;
    const whole = grouped(data.records);
    // Of a period only its failures count; the first and the last of all of the group are shown.
    const groups = whole.map((group) => ({ ...group, whole: group, records: group.records.filter(isWithin) })).filter(({ records }) => records.length > 0)
      .sort((one, other) => other.records.length - one.records.length);
    const plus = data.hasMore ? '+' : '';
    const chosen = page.query.group ? groups.find((group) => group.id === page.query.group) : null;
    const most = data.hasMore ? `There are more failures: only ${READ_MAX.toLocaleString()} of each list are counted here. The calls on all of a group take the others too. ` : '';
    const slow = data.records.length > PAGE ? 'So many failures are counted once a minute.' : '';
    const note = h('p', { class: 'quiet' }, most, slow);
    if (page.query.group && !chosen) {
      replace(body, empty('Nothing of this group has failed any more.', h('p', {}, link(['failures'], 'All failures'))));
    } else if (chosen) {
      replace(body, one(chosen, plus), note);
    } else if (groups.length === 0) {
      replace(body, periods(), empty(from ? 'Nothing that is kept has failed in this time.' : 'Nothing that is kept has failed.', h('p', {}, 'Failures are shown here until the retention has deleted them.')), note);
    } else {
      replace(body, periods(), table('Groups of failures', ['What failed', 'Error', 'Count', 'Rate', 'First', 'Last', 'Message of the last'], groups.map((group) => {
        const last = [...group.records].sort(byEnd)[0];
        const times = seen(group.whole, data.hasMore);
        return [h('a', { href: groupAddress(group, period), 'data-key': group.id }, groupName(group)), group.code, `${group.records.length}${plus}`, times.rate, times.first, times.last, h('span', { class: 'error' }, last.error ? errorText(last.error) : last.status)];
      })), note);
    }
  };

  /** Which failures count: those that ended since then. */
  function periods() {
    const pick = (value) => page.requery({ since: value, from: hoursAgo(value), before: null });
    return h('div', { class: 'filters' }, choice('since', 'Failed', ENDED, since, pick),
      from && before ? h('p', {}, `From ${local(millis(from))} to ${local(millis(before))}. `, link(['failures'], 'All of them')) : null);
  }

  function one(group, plus) {
    const times = seen(group.whole, plus);
    const records = [...group.records].sort(byEnd);
    return [
      h('p', {}, link(['failures'], 'All failures'), ` / ${groupName(group)}, error `, h('code', {}, group.code), `: ${records.length}${plus}`, from ? ' in the chosen time' : ''),
      facts([['First', times.first], ['Last', times.last], ['In the last hour', times.rate]]),
      section('Calls on all of them', many(page, `${group.what}s`, selection(group, period), { live: false, step: group.steps.size > 0 })),
      section('Records', table('Records', ['Id', 'Status', 'Started', 'Ended', 'Error'], records.slice(0, SHOWN).map((record) => [
        idCell(record), badge(record.status), startedCell(record), near(record.ended_at), h('span', { class: 'error' }, record.error ? errorText(record.error) : ''),
      ])), records.length > SHOWN ? h('p', { class: 'quiet' }, `The latest ${SHOWN} of ${records.length}${plus}.`) : null),
    ];
  }

  page.live(load, draw, 5000);
}

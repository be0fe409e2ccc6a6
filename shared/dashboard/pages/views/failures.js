// Failures, grouped by workflow or kind, step and error; a whole group can be retried.

import { get } from '../api.js';
import { address, badge, empty, h, link, replace, section, table } from '../dom.js';
import { FAILED, latest } from '../known.js';
import { idCell, startedCell } from '../lists.js';
import { many } from '../many.js';
import { refused } from '../problem.js';
import { near } from '../time.js';
import { byEnd, errorText, grouped } from '../words.js';

/** How many failures are read from each list. */
const READ = 500;
/** How many records of a group are shown. */
const SHOWN = 100;

export const groupName = (group) => `${group.what === 'task' ? 'task' : 'workflow'} ${group.of}${group.step ? `, step ${group.step}` : ''}`;
export const groupAddress = (group) => address(['failures'], { group: group.id });

export function show(page) {
  const body = page.root;

  const load = async (signal) => {
    const query = { status: FAILED, limit: READ };
    const [tasks, executions] = await Promise.all([get(['tasks'], query, signal), latest([], query, signal)]);
    return { records: [...tasks.tasks, ...executions.executions], hasMore: Boolean(tasks.cursor || executions.hasMore) };
  };

  const draw = (data) => {
    if (refused(body, data)) return;
    const groups = grouped(data.records);
    const chosen = page.query.group ? groups.find((group) => group.id === page.query.group) : null;
    const more = data.hasMore ? `Only the latest ${READ} of each list are grouped. ` : '';
    const note = h('p', { class: 'quiet' }, more);
    if (page.query.group && !chosen) {
      replace(body, empty('Nothing of this group has failed any more.', h('p', {}, link(['failures'], 'All failures'))));
    } else if (chosen) {
      replace(body, one(chosen), note);
    } else if (groups.length === 0) {
      replace(body, empty('Nothing that is kept has failed.', h('p', {}, 'Failures are shown here until the retention has deleted them.')), note);
    } else {
      replace(body, table('Groups of failures', ['What failed', 'Error', 'Count', 'Last', 'Message of the last'], groups.map((group) => {
        const last = [...group.records].sort(byEnd)[0];
        return [h('a', { href: groupAddress(group), 'data-key': group.id }, groupName(group)), group.code, String(group.records.length), near(last.ended_at), h('span', { class: 'error' }, last.error ? errorText(last.error) : last.status)];
      })), note);
    }
  };

  function one(group) {
    const records = [...group.records].sort(byEnd);
    return [
      h('p', {}, link(['failures'], 'All failures'), ` / ${groupName(group)}, error `, h('code', {}, group.code), `: ${records.length}`),
      section('Calls on all of them', many(page, `${group.what}s`, { ids: records.map((record) => record.id) }, { live: false, step: group.step !== null })),
      section('Records', table('Records', ['Id', 'Status', 'Started', 'Ended', 'Error'], records.slice(0, SHOWN).map((record) => [
        idCell(record), badge(record.status), startedCell(record), near(record.ended_at), h('span', { class: 'error' }, record.error ? errorText(record.error) : ''),
      ])), records.length > SHOWN ? h('p', { class: 'quiet' }, `The latest ${SHOWN} of ${records.length}.`) : null),
    ];
  }

  page.live(load, draw, 5000);
}

// Failures, grouped by workflow or kind, step and error; a whole group can be retried.

import { get, post, settings } from '../api.js';
import { confirmed } from '../actions.js';
import { commands, line } from '../commands.js';
import { address, badge, copier, empty, h, link, replace, section, table } from '../dom.js';
import { counted, latest, workflows } from '../known.js';
import { idCell, startedCell } from '../lists.js';
import { refused } from '../problem.js';
import { near } from '../time.js';
import { byEnd, errorText, grouped } from '../words.js';

/** How many failures are read from each list. */
const READ = 500;
/** How many records of a group are shown. */
const SHOWN = 100;

export const groupName = (group) => `${group.what === 'task' ? 'task' : 'workflow'} ${group.of}${group.step ? `, step ${group.step}` : ''}`;
export const groupAddress = (group) => address(['failures'], { group: group.id });

/** What can be done with each record of a group: one call for each. */
const MANY = {
  task: [{
    name: 'Retry all', says: 'Each task becomes pending again, with its input. Its old deadline no longer applies.',
    call: (one) => post(['tasks', one.id, 'retry']), command: (one) => commands.retryTask(one.id),
  }],
  execution: [{
    name: 'Retry the step of all', says: 'In each execution only the step that failed runs again, in the same run.', when: (group) => group.step !== null,
    call: (one) => post(['executions', one.id, 'steps', one.cause.step, 'retry']), command: (one) => commands.retryStep(one.id, one.cause.step),
  }, {
    name: 'Rerun all', says: 'Each execution gets a new run that keeps the results of the last one. Steps that failed run again.',
    call: (one) => post(['executions', one.id, 'rerun']), command: (one) => commands.rerun(one.id),
  }, {
    name: 'Restart all', says: 'Each execution gets a new run from the beginning. Steps that succeeded run again too.', final: 'Work that the steps have done is done again.',
    call: (one) => post(['executions', one.id, 'restart']), command: (one) => commands.restart(one.id),
  }],
};

export function show(page) {
  const progress = h('div', { id: 'progress' });
  const body = h('div');
  replace(page.root, progress, body);

  const load = async (signal) => {
    const names = await workflows(signal);
    const query = { status: 'failed,timed_out', limit: READ };
    const [tasks, executions] = await Promise.all([get(['tasks'], query, signal), latest(names, query, signal)]);
    return { records: [...tasks.tasks, ...executions.executions], hasMore: Boolean(tasks.cursor || executions.hasMore) };
  };

  const draw = (data) => {
    if (refused(body, data)) return;
    const groups = grouped(data.records);
    const chosen = page.query.group ? groups.find((group) => group.id === page.query.group) : null;
    const more = data.hasMore ? `Only the latest ${READ} of each list are grouped. ` : '';
    const note = h('p', { class: 'quiet' }, more, counted ? '' : 'Executions are of the workflows that workers have announced or that this browser has seen.');
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
    const offered = MANY[group.what].filter((action) => action.when?.(group) ?? true);
    return [
      h('p', {}, link(['failures'], 'All failures'), ` / ${groupName(group)}, error `, h('code', {}, group.code), `: ${records.length}`),
      section('Calls on all of them', h('ul', { class: 'actions' }, offered.map((action) => {
        const script = records.map((record) => line(action.command(record))).join('\n');
        return h('li', {},
          h('button', { type: 'button', disabled: settings.read_only, class: action.final ? 'danger' : '', 'data-key': action.name, onclick: () => many(action, group, records) }, action.name),
          h('span', { class: 'says' }, action.says, ' One call after the other.'),
          h('span', { class: 'command' }, h('code', {}, line(action.command(records[0])), records.length > 1 ? ' …' : ''), copier(script, `${records.length} commands`)));
      }))),
      section('Records', table('Records', ['Id', 'Status', 'Started', 'Ended', 'Error'], records.slice(0, SHOWN).map((record) => [
        idCell(record), badge(record.status), startedCell(record), near(record.ended_at), h('span', { class: 'error' }, record.error ? errorText(record.error) : ''),
      ])), records.length > SHOWN ? h('p', { class: 'quiet' }, `The latest ${SHOWN} of ${records.length}.`) : null),
    ];
  }

  /** Makes the call on each record, and shows how far it is. */
  async function many(action, group, records) {
    const texts = [`${action.says} ${records.length} ${records.length === 1 ? 'call' : 'calls'}, one after the other; it can be stopped between two.`, action.final].filter(Boolean);
    if (!(await confirmed(action.name, groupName(group), texts))) return;
    let isStopped = false;
    const refusals = [];
    const bar = h('progress', { max: records.length, value: 0, 'aria-label': action.name });
    const said = h('span', { role: 'status' });
    const stop = h('button', { type: 'button', onclick: () => { isStopped = true; } }, 'Stop');
    replace(progress, h('p', { class: 'banner' }, `${action.name}: `, bar, ' ', said, ' ', stop));
    let count = 0;
    for (const record of records) {
      if (isStopped || page.signal.aborted) break;
      try {
        await action.call(record);
      } catch (error) {
        refusals.push([record, error]);
      }
      count += 1;
      bar.value = count;
      said.textContent = `${count} of ${records.length}`;
    }
    stop.remove();
    said.textContent = `${count - refusals.length} of ${records.length} done${isStopped ? ', stopped' : ''}${refusals.length > 0 ? `, ${refusals.length} refused` : ''}.`;
    if (refusals.length > 0) {
      progress.append(table('Refused calls', ['Id', 'Why'], refusals.slice(0, SHOWN).map(([record, error]) => [idCell(record), `${error.title ?? 'no answer'}: ${error.detail ?? error.message} (${error.code ?? 'unreachable'})`])));
    }
    await refresh();
  }

  const refresh = page.live(load, draw, 5000);
}


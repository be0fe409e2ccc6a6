// All crons, or one of them.

import { get } from '../api.js';
import { command, panel } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, facts, h, link, replace, section, table } from '../dom.js';
import { PAGE, pages } from '../lists.js';
import { payload } from '../payload.js';
import { refused } from '../problem.js';
import { at, both, length, millis, near, utc } from '../time.js';
import { who } from '../words.js';

const BAD = ['failed', 'timed_out', 'refused'];
const ENDED = [...BAD, 'completed', 'cancelled', 'skipped'];
const EXAMPLE = ['cron', 'create', '--id', 'nightly', '--cron', '0 3 * * *', '--time-zone', 'Europe/Berlin', '--task', '{"queue": "reports", "kind": "daily"}'];

export function show(page) {
  return page.id === undefined ? all(page) : one(page);
}

function all(page) {
  const load = (signal) => get(['crons'], { limit: PAGE, cursor: page.query.cursor }, signal);
  const draw = (data) => {
    if (refused(page.root, data)) return;
    if (data.crons.length === 0 && !page.query.cursor) {
      replace(page.root, empty('There is no cron yet. A cron starts a task or an execution again and again:', command(EXAMPLE)));
      return;
    }
    replace(page.root, table('Crons', ['Cron', 'Status', 'When', 'Starts', 'Next', 'Started', 'Last run'], data.crons.map((cron) => [
      link(['crons', cron.id], cron.id, { class: 'id', 'data-key': `cron ${cron.id}` }), state(cron), plan(cron), work(cron), near(cron.next_start_at) ?? '', String(cron.started), lastRun(cron),
    ])), pages(page, data.cursor), h('p', { class: 'quiet' }, 'The same in a shell: ', command(commands.listCrons())));
  };
  page.live(load, draw, 3000);
}

function one(page) {
  const load = (signal) => get(['crons', page.id], {}, signal);
  const draw = (data) => {
    if (refused(page.root, data, h('p', {}, link(['crons'], 'All crons')))) return;
    const { cron } = data;
    replace(page.root,
      h('div', { class: 'state' }, h('p', {}, state(cron), ` It starts ${work(cron)}, ${plan(cron)}.`), facts([
        ['Next occurrence', both(cron.next_at)],
        ['It starts', cron.next_start_at === cron.next_at ? null : both(cron.next_start_at)],
        ['Paused', both(cron.paused_at)],
        ['Finished', both(cron.finished_at)],
        ['Created', both(cron.created_at)],
        ['Changed by', who(cron.by)],
        ['While a run is open', cron.overlap.replaceAll('_', ' ')],
        ['Missed occurrences', cron.missed.replaceAll('_', ' ')],
        ['Jitter', cron.jitter],
        ['Started', cron.max_runs ? `${cron.started} of ${cron.max_runs}` : String(cron.started)],
        ['Waiting for an open run', cron.waiting > 0 ? String(cron.waiting) : null],
      ])),
      upcoming(cron),
      section('Calls', panel('cron', cron, refresh)),
      section('Last runs', cron.runs.length === 0 ? h('p', { class: 'quiet' }, 'It has had no run.') : table('Last runs', ['Occurrence', 'Run', 'State', 'Status', 'Ended', 'Took', 'Why'], [...cron.runs].reverse().map((run) => [
        [at(run.at), run.manual ? ' (triggered)' : ''], link([cron.execution === undefined ? 'tasks' : 'executions', run.id]), badge(run.state), run.status ? badge(run.status) : '', at(run.ended_at) ?? '', run.ended_at ? length(millis(run.ended_at) - millis(run.at)) : '', run.reason?.replaceAll('_', ' ') ?? '',
      ]))),
      section('What it starts', payload('Task', cron.task, cron.id), payload('Execution', cron.execution, cron.id)),
      section('In a shell', h('p', {}, command(commands.showCron(cron.id)))));
  };
  const refresh = page.live(load, draw, 2000);
}

/** The next occurrences, by the clocks of the cron's own zone and in UTC. */
function upcoming(cron) {
  if (!cron.upcoming) return null;
  const zone = cron.time_zone ?? '';
  const columns = zone ? [`By the clocks of ${zone}`, 'In UTC', 'When'] : ['In UTC', 'When'];
  return section('Next occurrences', table('Next occurrences', columns, cron.upcoming.map((one) => [
    ...(zone ? [one.local.replace('T', ' ')] : []), utc(millis(one.at)), near(one.at),
  ])));
}

const plan = (cron) => (cron.cron ? `${cron.cron}${cron.time_zone ? ` (${cron.time_zone})` : ''}` : `every ${cron.every}`);

function work(cron) {
  if (cron.task) return `the task ${cron.task.kind} in the queue ${cron.task.queue}`;
  return cron.execution ? `the workflow ${cron.execution.workflow}` : 'its work';
}

/** The end of a run, if it has one: its status, or that it was refused. */
const end = (run) => (run.state === 'refused' ? run.state : ENDED.includes(run.status) ? run.status : null);

/** The status of a cron, and whether the last of its runs that has ended failed. */
function state(cron) {
  const last = cron.runs.map(end).filter(Boolean).at(-1);
  return BAD.includes(last) ? h('span', { class: 'badge failed' }, `${cron.status}, last run ${last.replaceAll('_', ' ')}`) : badge(cron.status);
}

function lastRun(cron) {
  const run = cron.runs.at(-1);
  return run ? [link([cron.execution === undefined ? 'tasks' : 'executions', run.id], run.id), ' ', badge(run.status ?? run.state), ' ', near(run.at)] : '';
}

// One execution: its state, what happens next, its timeline, its payloads, and the calls on it.

import { Problem, get } from '../api.js';
import { command, panel } from '../actions.js';
import { commands } from '../commands.js';
import { address, badge, facts, h, link, notify, replace, section, table, trace } from '../dom.js';
import { errorCell, labelLink } from '../lists.js';
import { remember } from '../known.js';
import { failure, payload, save } from '../payload.js';
import { isMissing, outdated, problem } from '../problem.js';
import { at, both, length, millis, near, now } from '../time.js';
import { Timeline } from '../timeline/view.js';
import { errorText, next, reason, wait, who } from '../words.js';
import { keyLink } from './limits.js';
import { repair, retryStep } from './repair.js';

/** After how many entries of a timeline it is asked for only when the execution has changed. */
const LONG = 500;
/** Up to how many characters a published value is short. */
const SHORT = 100;
/** How many earlier runs are listed. */
const RUNS = 20;

export function show(page) {
  const { root, id } = page;
  const parts = Object.fromEntries(['gone', 'state', 'next', 'published', 'actions', 'repair', 'timeline', 'unread', 'runs', 'payloads', 'export', 'more'].map((name) => [name, h('div')]));
  const timeline = new Timeline(page);
  // The earlier run whose timeline is shown.
  const run = page.query.run;
  let known = null;
  // The run for whose repair there is a form: it keeps what was typed.
  let repaired = null;

  const load = async (signal) => {
    const { execution } = await get(['executions', id], {}, signal);
    const isKept = known && (run || (isSame(known, execution) && known.entries.length > LONG));
    const [earlier, { entries, unread }, events, runs] = await Promise.all([
      known?.earlier ?? (run ? get(['executions', id], { run }, signal).then((answer) => answer.execution) : null),
      isKept ? known : get(['executions', id, 'timeline'], { run }, signal),
      execution.pending_events > 0 ? get(['executions', id, 'events'], {}, signal).then((answer) => answer.counts) : {},
      execution.run === (known?.execution.run ?? 1) ? known?.runs : get(['executions', id, 'runs'], { limit: RUNS }, signal),
    ]);
    return { execution, earlier, entries, unread, events, runs };
  };

  const draw = (data) => {
    if (data instanceof Problem) return refused(data);
    const { execution, earlier, entries, unread, events, runs } = data;
    const shown = earlier ?? execution;
    const isFirst = known === null;
    known = data;
    if (isFirst) {
      remember(execution.workflow);
      replace(root, Object.values(parts).filter((part) => part !== parts.unread));
      parts.timeline.replaceChildren(section(run ? `Timeline of run ${run}` : 'Timeline', timeline.element, parts.unread));
      parts.export.replaceChildren(exporting(id, run));
    }
    parts.gone.replaceChildren();
    replace(parts.state, earlier ? notCurrent(execution, earlier) : null, state(shown, entries, run));
    replace(parts.next, earlier ? null : section('What happens next', h('p', { class: 'next' }, next(execution), execution.waits_at ? [' ', keyLink(execution.waits_at.limit.key, 'Who has the places')] : null), waits(execution), pending(execution, events)));
    replace(parts.published, earlier ? null : published(execution));
    replace(parts.actions, section(earlier ? 'Calls on the execution' : 'Calls', panel('execution', execution, refresh, true)));
    if (earlier || !execution.ended_at) repaired = null;
    else if (repaired !== execution.run) {
      repaired = execution.run;
      replace(parts.repair, retryStep(execution, entries, refresh), repair(execution, entries, refresh));
    }
    if (repaired === null) replace(parts.repair);
    replace(parts.unread, unread ? h('p', { class: 'quiet' }, `${unread.toLocaleString()} more open steps and children weren’t read: some of them may have ended.`) : null);
    timeline.update(run ? { created_at: entries[0].at, ended_at: entries.at(-1).at } : execution, entries);
    replace(parts.runs, runs ? runsOf(execution, runs, run) : null);
    replace(parts.payloads, payloads(shown, execution.id));
    replace(parts.more, section('In a shell', [run ? commands.showExecution(id, run) : commands.explain(id), commands.timeline(id, run)].map((args) => h('p', {}, command(args)))));
  };

  /** The execution isn't there: it never was, it was deleted, or the id is that of something else. */
  async function refused(refusal) {
    if (known) {
      replace(parts.gone, outdated(refusal));
      if (isMissing(refusal)) replace(parts.actions);
      return;
    }
    if (isMissing(refusal) && page.query.find) {
      for (const kind of ['tasks', 'crons']) {
        const found = await get([kind, id], {}, page.signal).catch(() => null);
        if (found) return location.replace(`#/${kind}/${encodeURIComponent(id)}`);
      }
      return location.replace(address(['search'], { q: id }));
    }
    replace(root, problem(refusal), isMissing(refusal) && h('p', {}, 'It may have been deleted after its retention, or it is the id of a task: ', link(['tasks', id], `look for the task ${id}`)));
  }

  const refresh = page.live(load, draw, 2000);
}

/** Says that all below is of an earlier run. */
function notCurrent(execution, earlier) {
  if (earlier.run === execution.run) return null;
  return h('p', { class: 'banner' }, `This is run ${earlier.run} as it was at its end. The current one is `, link(['executions', execution.id], `run ${execution.run}`), ', which is ', badge(execution.status), '.');
}

/** The runs of an execution, as links to their timelines. */
function runsOf(execution, { runs, cursor }, shown) {
  const all = [{ ...execution, started_at: execution.run_started_at }, ...runs];
  const rows = all.map((one) => [
    h('a', { href: address(['executions', execution.id], one.run === execution.run ? {} : { run: one.run }), 'aria-current': one.run === Number(shown ?? execution.run) ? 'true' : null }, `run ${one.run}`),
    badge(one.status), at(one.started_at), at(one.ended_at), errorCell(one),
    one.run === Number(shown ?? execution.run) ? '' : link([], 'Compare', { href: address(['compare'], { one: execution.id, run: one.run, with: shown ?? execution.run }), 'aria-label': `Compare with run ${one.run}` }),
  ]);
  const isWhole = runs.at(-1)?.run === 1;
  return section('Runs',
    table('Runs', ['Run', 'Status', 'Started', 'Ended', 'Error', 'Differences'], rows),
    isWhole || cursor ? null : h('p', { class: 'quiet' }, 'Earlier ones have been deleted after their retention.'),
    cursor ? h('p', {}, 'There are more: ', command(commands.runs(execution.id))) : null);
}

/** Saves the history of a run, with or without its payloads. */
function exporting(id, number) {
  const payloads = h('input', { type: 'checkbox', id: 'export-payloads', checked: true });
  const button = h('button', { type: 'button' }, 'Export');
  button.onclick = async () => {
    button.disabled = true;
    try {
      const run = await whole(id, number, payloads.checked);
      save(JSON.stringify(run), number ? `${id}-run-${number}.json` : `${id}.json`);
    } catch (error) {
      notify(`${error.title ?? 'No answer'}: ${error.message}`, true);
    }
    button.disabled = false;
  };
  return section('Export',
    h('p', {}, 'The history of a run as a file. A test replays it with today’s code, before a deployment.'),
    h('p', { class: 'tools' }, button, ' ', payloads, h('label', { for: 'export-payloads' }, ' with inputs and results, which a replay needs')),
    h('p', {}, command(commands.exportRun(id, number))));
}

/** All parts of an export as one. */
async function whole(id, number, payloads) {
  const query = { run: number, payloads };
  const run = await get(['executions', id, 'export'], query);
  while (run.cursor) {
    const { entries, cursor } = await get(['executions', id, 'export'], { ...query, cursor: run.cursor });
    run.entries.push(...entries);
    run.cursor = cursor;
  }
  return run;
}

function isSame(known, execution) {
  return known !== null && JSON.stringify(known.execution) === JSON.stringify(execution);
}

/** A link to the lane of the step because of which it failed. */
function failedLane({ id, cause }, run) {
  return cause?.step ? [' ', h('a', { href: address(['executions', id], { run, lane: `${cause.kind === 'execution' ? 'child' : 'step'} ${cause.step.replace(/^child:/, '')}` }) }, 'Show it')] : null;
}

/** What an operator did last, by the timeline. */
function operated(entries) {
  const last = entries.findLast((entry) => entry.by);
  return last ? [`${last.kind.replaceAll('_', ' ')} by ${who(last.by)}, `, near(last.at)] : null;
}

function state(execution, entries, run) {
  return h('div', { class: 'state' },
    h('p', {}, badge(execution.status), ' ', reason(execution), failedLane(execution, run), execution.closing ? ' Its open steps and children are being ended.' : ''),
    execution.stuck ? h('p', { class: 'problem' }, h('strong', {}, 'Stuck: '), errorText(execution.stuck)) : null,
    execution.failing ? h('p', { class: 'problem' }, h('strong', {}, execution.failing.status === 'cancelled' ? 'Cancelled' : 'Failed'), execution.failing.error ? ` with ${errorText(execution.failing.error)}` : '', '. Its handler for that must end by ', both(execution.failing.deadline_at), '.') : null,
    execution.cancel_requested && !execution.ended_at ? h('p', {}, 'A cancellation was requested: its code stops at its next step, and its undo steps run.') : null,
    execution.error ? failure(execution.error) : null,
    facts([
      ['Workflow', h('a', { href: `#/executions?workflow=${encodeURIComponent(execution.workflow)}` }, execution.workflow)],
      ['Queue', execution.queue],
      ['Priority', execution.priority],
      ['Started', both(execution.created_at)],
      ['Ended', both(execution.ended_at)],
      ['Took', execution.ended_at ? length(millis(execution.ended_at) - millis(execution.created_at)) : null],
      ['Deadline', limit(execution, execution.deadline_at, execution.execution_timeout)],
      ['Deadline of this run', limit(execution, execution.run_deadline_at, execution.run_timeout)],
      ['Failure handler', execution.on_failure_timeout ? `at most ${execution.on_failure_timeout}` : null],
      ['Completed steps', execution.completed_steps || null],
      ['Run', execution.run > 1 ? [`${execution.run}, since `, at(execution.run_started_at)] : null],
      ['Worker', execution.worker],
      ['Operated last', operated(entries)],
      ['Parent', execution.parent ? link(['executions', execution.parent.id]) : null],
      ['Labels', labels(execution.labels)],
      ['Trace', trace(execution)],
    ]));
}

/** A deadline with its length. Of an ended execution it is past, whatever the time. */
function limit({ ended_at: ended }, instant, span) {
  const shown = ended ? at(instant) : deadline(instant);
  return instant ? [shown, span ? `, after ${span}` : ''] : span;
}

/** A deadline with the time that is left. */
export function deadline(instant) {
  if (!instant) return null;
  const left = millis(instant) - now();
  return h('span', { class: left < 60_000 ? 'soon' : '' }, at(instant), left > 0 ? [', ', near(instant)] : [', passed ', near(instant)]);
}

/** Labels as name=value, each a link to all that has it. */
export function labels(values) {
  const pairs = Object.entries(values ?? {});
  return pairs.length > 0 ? pairs.map(([name, value]) => labelLink(name, value)) : null;
}

function waits(execution) {
  const all = execution.waits_for ?? [];
  if (all.length === 0) return null;
  const shown = all.slice(0, 20).map((one) => h('li', {}, wait(one), one.task ? [', task ', link(['tasks', one.task])] : null, one.execution ? [', execution ', link(['executions', one.execution])] : null, one.until ? [', ', near(one.until)] : null));
  return [h('p', {}, 'It waits for:'), h('ul', {}, shown, all.length > 20 ? h('li', {}, `and ${all.length - 20} more`) : null)];
}

function pending(execution, counts) {
  const names = Object.entries(counts);
  const send = execution.ended_at ? null : h('p', {}, h('a', { href: `#/events?id=${encodeURIComponent(execution.id)}` }, 'Send it an event'));
  if (names.length === 0) return send;
  return [h('p', {}, 'Events that its code hasn’t taken: ', names.map(([name, count]) => h('span', { class: 'label' }, `${name} × ${count}`))), send];
}

function payloads({ input, output, memo }, id) {
  const all = [payload('Input', input, id), payload('Output', output, id), payload('Memo', memo, id)];
  return section('Input and output', all.some(Boolean) ? all : h('p', { class: 'quiet' }, 'It has none.'));
}

/** What its code has published. A short value is shown as it is. */
function published({ id, values = [] }) {
  if (values.length === 0) return null;
  const shown = ({ name, value }) => (JSON.stringify(value).length <= SHORT ? JSON.stringify(value) : payload(name, value, id));
  const rows = values.map((one) => [one.name, shown(one), one.version.toLocaleString(), near(one.published_at)]);
  return section('Published', table('Published', ['Name', 'Value', 'Version', 'When'], rows));
}


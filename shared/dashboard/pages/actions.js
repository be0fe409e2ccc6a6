// The calls of operators: each with what it does, a confirmation where it can't be undone, and its command.

import { because, keyPart, post, remove, settings } from './api.js';
import { commands, line } from './commands.js';
import { copier, h, notify } from './dom.js';

const isLive = (record) => !record.ended_at;
const hasEnded = (record) => !isLive(record) && record.status !== 'completed' && record.status !== 'skipped';

/** The calls on an execution. `when` says in which state one is offered, `final` why it can't be undone. */
const EXECUTION = [
  {
    name: 'Pause', says: 'It starts nothing new until it is resumed. Its deadlines keep running.',
    when: (one) => isLive(one) && one.status !== 'paused',
    call: (one) => post(['executions', one.id, 'pause']), command: (one) => commands.pauseExecution(one.id),
  },
  {
    name: 'Resume', says: 'It continues where it was paused or stuck.',
    when: (one) => isLive(one) && (one.status === 'paused' || one.stuck),
    call: (one) => post(['executions', one.id, 'resume']), command: (one) => commands.resumeExecution(one.id),
  },
  {
    name: 'Retry the step', says: 'Only the step that failed runs again, in the same run.',
    when: (one) => one.status === 'failed' && one.cause?.step,
    call: (one) => post(['executions', one.id, 'steps', one.cause.step, 'retry']), command: (one) => commands.retryStep(one.id, one.cause.step),
  },
  {
    name: 'Rerun', says: 'A new run keeps the results of the last one. Steps that failed run again.',
    when: (one) => !isLive(one),
    call: (one) => post(['executions', one.id, 'rerun']), command: (one) => commands.rerun(one.id),
  },
  {
    name: 'Restart', says: 'A new run from the beginning, with the same input and new deadlines. Steps that succeeded run again too.',
    when: (one) => !isLive(one), final: 'Work that the steps have done, such as payments, is done again unless they are idempotent.',
    call: (one) => post(['executions', one.id, 'restart']), command: (one) => commands.restart(one.id),
  },
  {
    name: 'Cancel', says: 'Its code stops at its next step, and its undo steps run. It ends at once if it waits and has none. Running steps may finish.',
    when: (one) => isLive(one), final: 'A cancelled execution doesn’t continue. It can only be run again.',
    call: (one) => post(['executions', one.id, 'cancel']), command: (one) => commands.cancelExecution(one.id),
  },
  {
    name: 'Terminate', says: 'It ends at once, even while its code runs. No code of the workflow sees that.',
    when: (one) => isLive(one), final: 'Nothing is cleaned up: no compensation and no failure handler runs.',
    call: (one) => post(['executions', one.id, 'terminate']), command: (one) => commands.terminate(one.id),
  },
];

const TASK = [
  {
    name: 'Retry', says: 'It becomes pending again, with its input and all its attempts. Its old deadline no longer applies.',
    when: hasEnded,
    call: (one) => post(['tasks', one.id, 'retry']), command: (one) => commands.retryTask(one.id),
  },
  {
    name: 'Cancel', says: 'It ends at once if it waits. A worker that has it is asked to stop.',
    when: isLive, final: 'It doesn’t run, unless an operator retries it.',
    call: (one) => post(['tasks', one.id, 'cancel']), command: (one) => commands.cancelTask(one.id),
  },
  {
    name: 'Cancel by force', says: 'It ends at once. The result of the worker that has it will be refused.',
    when: (one) => isLive(one) && one.status === 'running', final: 'The worker may go on for a while, and its result is lost.',
    call: (one) => post(['tasks', one.id, 'cancel'], { force: true }), command: (one) => commands.forceCancelTask(one.id),
  },
];

const QUEUE = [
  {
    name: 'Pause', says: 'Its tasks aren’t given to workers until it is resumed. Their deadlines keep running.',
    when: (one) => !one.paused,
    call: (one) => post(['queues', one.name, 'pause']), command: (one) => commands.pauseQueue(one.name),
  },
  {
    name: 'Resume', says: 'Its tasks are given to workers again, within some seconds.',
    when: (one) => one.paused,
    call: (one) => post(['queues', one.name, 'resume']), command: (one) => commands.resumeQueue(one.name),
  },
];

const CRON = [
  {
    name: 'Trigger', says: 'A run starts now, beside the planned ones.',
    when: (one) => one.status !== 'deleted', final: 'The work of a run that has started isn’t undone.',
    call: (one) => post(['crons', one.id, 'trigger']), command: (one) => commands.triggerCron(one.id),
  },
  {
    name: 'Pause', says: 'It starts no planned runs until it is resumed.',
    when: (one) => one.status === 'active',
    call: (one) => post(['crons', one.id, 'pause']), command: (one) => commands.pauseCron(one.id),
  },
  {
    name: 'Resume', says: 'It continues with its next occurrence. Those that passed meanwhile are left out.',
    when: (one) => one.status === 'paused',
    call: (one) => post(['crons', one.id, 'resume']), command: (one) => commands.resumeCron(one.id),
  },
  {
    name: 'Delete', says: 'It starts nothing any more. Work that it has started isn’t changed.',
    when: (one) => one.status !== 'deleted', final: 'The cron and the list of its runs are gone.',
    call: (one) => remove(['crons', one.id]), command: (one) => commands.deleteCron(one.id),
  },
];

const OPERATION = [
  {
    name: 'Stop', says: 'The page of 100 records under way is its last one. Nothing is undone.',
    when: (one) => one.status === 'running',
    call: (one) => post(['operations', one.id, 'stop']), command: (one) => commands.stopOperation(one.id),
  },
  {
    name: 'Resume', says: 'It goes on after the last page of 100 records that was counted.',
    when: (one) => one.status === 'stopped' || one.status === 'failed',
    call: (one) => post(['operations', one.id, 'resume']), command: (one) => commands.resumeOperation(one.id),
  },
];

const LIMIT = [
  {
    name: 'Unset', says: 'The limit that the latest request asks for counts again.',
    when: (one) => one.pinned,
    call: (one) => remove(['limits', keyPart(one.id)]), command: (one) => commands.unsetLimit(one.id),
  },
  {
    name: 'Reset', says: 'All starts by the rate are forgotten: the next one comes at once.',
    when: (one) => one.rate !== undefined,
    call: (one) => remove(['limits', keyPart(one.id), 'rate']), command: (one) => commands.resetRate(one.id),
  },
];

/** The call on a task or an execution that has a place at a key. */
export const RELEASE = {
  name: 'Release', says: 'Its place is free at once, and the next one gets it.', final: 'A task that had it loses its attempt at its next heartbeat, unless a place is free then. Until then, more than the limit may run.',
  call: (one) => remove(['limits', keyPart(one.key), 'holders', one.id]), command: (one) => commands.releasePlace(one.key, one.id),
};

export const actions = { execution: EXECUTION, task: TASK, queue: QUEUE, cron: CRON, operation: OPERATION, limit: LIMIT };

/** The calls that fit a record's state, each with its text and its command. `done` is called after one succeeded. `isShort`: the
 * buttons are a row, and texts and commands can be unfolded below it. */
export function panel(kind, record, done, isShort = false) {
  const fitting = actions[kind].filter((action) => action.when(record));
  if (fitting.length === 0) return h('p', { class: 'quiet' }, 'No call applies in this state.');
  const note = settings.read_only ? h('p', { class: 'quiet' }, 'This dashboard is read-only: the commands work where you may call the system.') : null;
  const id = record.id ?? record.name;
  const reason = settings.read_only ? null : whyField(`why-${kind}-${id}`);
  const buttons = fitting.map((action) => button(action, record, done, `${kind} ${id} ${action.name}`, reason));
  const rows = fitting.map((action, number) => h('li', {}, isShort ? h('strong', {}, action.name) : buttons[number], h('span', { class: 'says' }, action.says), command(action.command(record))));
  const list = h('ul', { class: 'actions' }, rows);
  if (!isShort) return [note, list, reason];
  return [note, h('div', { class: 'buttons' }, buttons, reason), h('details', { 'data-key': `about ${kind} ${id}` }, h('summary', {}, 'What they do, and their commands'), list)];
}

/** How many bytes a reason may have. */
const REASON_MAX = 128;

/** A field for the reason of a call. What the call changes says it, with the caller. */
export function whyField(id) {
  return h('input', { id, class: 'why', maxlength: REASON_MAX, placeholder: 'Why (optional)', 'aria-label': 'Why', autocomplete: 'off' });
}

/** One call as a button. `reason` is the field with its reason. */
export function button(action, record, done, key, reason = null) {
  const run = (event) => perform(action, record, event.currentTarget, done, reason?.value.trim() || null);
  const name = record.id ?? record.name;
  return h('button', {
    type: 'button', class: action.final ? 'danger' : '', disabled: settings.read_only, onclick: run, 'data-key': key,
    title: settings.read_only ? 'This dashboard is read-only' : action.says, 'aria-label': `${action.name} ${name}`,
  }, action.name);
}

/** A command with its button to copy it. */
export function command(args) {
  const text = line(args);
  const isLong = text.length > 300;
  return h('span', { class: 'command' }, h('code', {}, isLong ? `${text.slice(0, 300)}…` : text), copier(text, isLong ? 'the command' : text));
}

async function perform(action, record, pressed, done, reason) {
  if (action.final && !(await confirmed(action.name, record.id ?? record.name, [action.says, action.final], action.command(record)))) return;
  pressed.disabled = true;
  try {
    const answer = await because(reason, () => action.call(record));
    notify(outcome(action, record, answer));
  } catch (error) {
    notify(refusal(action.name, record.id ?? record.name, error), true);
  }
  pressed.disabled = false;
  await done();
}

/** After which time without an answer a form says so, in milliseconds. */
const SLOW_MS = 5000;

/** Makes the call of a form, whose button can’t be pressed a second time meanwhile. */
export async function submit(event, call) {
  event.preventDefault();
  const button = event.submitter;
  button.disabled = true;
  const slow = setTimeout(() => notify(`No answer for ${SLOW_MS / 1000} s.`, true), SLOW_MS);
  try {
    await call();
  } finally {
    clearTimeout(slow);
    button.disabled = false;
  }
}

/** Why a call on something had no success. */
export const refusal = (call, on, error) => `${call} ${on}: ${error.title ? `${error.title}. ` : 'no answer. '}${error.detail ?? error.message} (${error.code ?? 'unreachable'})`;

function outcome(action, record, answer) {
  const name = record.id ?? record.name;
  if (answer.outcome === 'already_finished') return `${name} had ended before.`;
  if (answer.outcome === 'requested') return `${action.name} ${name}: requested. Its worker is told.`;
  if (answer.run && typeof answer.run === 'string') return `${action.name} ${name}: started ${answer.run}.`;
  return `${action.name} ${name}: done.`;
}

/** Asks in a dialog. Resolves to whether it was confirmed. */
export function confirmed(name, id, texts, args = null) {
  return new Promise((resolve) => {
    const close = () => dialog.close('no');
    const dialog = h('dialog', { 'aria-labelledby': 'confirm-title', onclose: () => { dialog.remove(); resolve(dialog.returnValue === 'yes'); } },
      h('h2', { id: 'confirm-title' }, `${name} ${id}?`),
      texts.map((text) => h('p', {}, text)),
      args ? command(args) : null,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', onclick: close, autofocus: true }, 'No, go back'),
        h('button', { type: 'button', class: 'danger', id: 'confirm-yes', onclick: () => dialog.close('yes') }, `Yes, ${name.toLowerCase()}`)));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Answers of the API in words: why something is in its state, what happens next, and when.

import { both, near } from './time.js';

const REASONS = {
  pending: 'It waits for a worker.',
  running: 'A worker has it.',
  waiting: 'Nothing runs until an event, a timer or other work wakes it.',
  paused: 'An operator holds it. Its deadlines keep running.',
  completed: 'It has a result.',
  cancelled: 'It was cancelled.',
  skipped: 'It was never run, as its policy says.',
};

const TIMEOUTS = {
  schedule_to_close: 'The deadline over all attempts passed.',
  schedule_to_start: 'No worker claimed it in time.',
  start_to_close: 'An attempt ran too long.',
  heartbeat: 'Its work gave no sign of life in time.',
  execution: 'The deadline over all its runs passed.',
  run: 'The deadline of its run passed.',
};

/** Who has changed something: a caller, and the operation that did it for them. */
export function who(by) {
  if (!by) return null;
  const names = [by.caller, by.operation ? `operation ${by.operation}` : null].filter(Boolean).join(', ') || 'somebody';
  return by.reason ? `${names} (${by.reason})` : names;
}

/** `code: message`. */
export const errorText = (error) => (error.message ? `${error.code}: ${error.message}` : error.code);

/** Why a task or an execution is in its state. */
export function reason(record) {
  const { status, cause } = record;
  if (status === 'timed_out') return TIMEOUTS[record.timeout_kind] ?? 'A timeout passed.';
  if (status === 'failed' && cause?.step) {
    return cause.retries_exhausted ? `Its step ${cause.step} failed at the last of its attempts.` : `Its step ${cause.step} failed.`;
  }
  if (status === 'failed') return record.workflow ? 'Its code returned an error.' : 'Its last attempt failed.';
  if (status === 'cancelled' && cause?.category === 'terminated') return 'It was terminated.';
  if (status === 'pending' && record.next.paused) return `Its queue ${record.queue} is paused: no worker gets it.`;
  if (status === 'running' && record.worker) return `The worker ${record.worker} has it.`;
  return REASONS[status] ?? '';
}

/** A task's retry policy, if it may be tried again. */
export function retries({ max_attempts: most, retry }) {
  if (!retry || most === 0 || most === 1) return null;
  const { delay, backoff, max_delay: longest, jitter, non_retryable: codes } = retry;
  return [
    Array.isArray(delay) ? `delays ${delay.join(', ')}` : `delay ${delay}`,
    backoff === 1 ? null : `backoff ${backoff}`,
    longest ? `at most ${longest}` : null,
    jitter === 'full' ? 'full jitter' : null,
    codes.length > 0 ? `not after ${codes.join(', ')}` : null,
  ].filter(Boolean).join('; ');
}

/** The lengths of a task's timeouts, as facts. */
export function timeouts({ timeouts: all = {} }) {
  const text = (one) => one && `${one.after}${one.on_timeout === 'retry' ? ', retried' : ''}${one.error_on_timeout ? '' : ', then cancelled'}`;
  return [
    ['Must end within', text(all.schedule_to_close)],
    ['An attempt must start within', text(all.schedule_to_start)],
    ['An attempt must end within', text(all.start_to_close)],
    ['A heartbeat at least every', text(all.heartbeat)],
  ];
}

/** What happens next by itself, as texts and instants. */
export function next(record) {
  const { what, at, unprovided } = record.next;
  const when = at ? both(at) : '';
  const workers = `a worker of the queue ${record.queue}`;
  switch (what) {
    case 'becomes_available': return [`From `, when, ` on, ${workers} may take it.`];
    case 'run_starts': return [`Run ${record.run} starts `, when, `, as attempt ${record.attempt}${record.max_attempts > 0 ? ` of ${record.max_attempts}` : ''}.`];
    case 'waits_for_rate': return [`From `, when, ` on, the rate of the key ${record.next.key} lets it start. It needs ${workers}.`];
    case 'waits_for_worker': if (unprovided) return [`No worker of the queue ${record.queue} has said that it provides ${unprovided.join(', ')}.`];
      return [`The first of its workers that asks takes it. It needs ${workers}.`];
    case 'queue_paused': return [`Nothing, until the queue ${record.queue} is resumed.`];
    case 'waits_for_place': return held(record.waits_at);
    case 'lease_expires': return ['Its worker must report or send a heartbeat by ', when, '; otherwise another worker takes over.'];
    case 'step_times_out': return ['The time of a step’s attempt is over ', when, '. If its worker doesn’t report that, another one takes over.'];
    case 'wakes_up': return ['It continues by itself ', when, '.'];
    case 'looks_again': return ['It checks whether the work that it waits for has ended ', when, '.'];
    case 'waits_for_others': return ['It continues with an event, or when what it waits for has ended. Nothing limits the wait.'];
    case 'waits_for_operator': return ['Nothing, until an operator resumes it.'];
    case 'execution_timeout': return ['Unless it has ended by ', when, ', it times out.'];
    case 'run_timeout': return ['Unless its run has ended by ', when, ', it times out.'];
    case 'on_failure_timeout': return ['Unless its code for failures has ended by ', when, ', it ends as failed.'];
    case 'on_cancel_timeout': return ['Its code for cancellations has until ', when, '. Then it is cancelled in any case.'];
    case 'closes': return ['The steps and children that it left open are being ended.'];
    case 'schedule_to_close_timeout': return ['Unless it has ended by ', when, ', it times out for good.'];
    case 'schedule_to_start_timeout': return ['Unless a worker claims it by ', when, ', this attempt times out.'];
    case 'heartbeat_timeout': return ['Unless its work gives a sign of life by ', when, ', this attempt times out.'];
    case 'start_to_close_timeout': return ['Unless this attempt has ended by ', when, ', it times out.'];
    case 'deleted': return ['Nothing. The record is deleted ', when, '.'];
    default: return [what.replaceAll('_', ' '), ' ', when];
  }
}

/** Which key holds a task or an execution back, and its position. */
function held({ limit, position }) {
  const most = limit.limit === undefined ? '' : ` of ${limit.limit}`;
  return [`It waits for a place at the key ${limit.key}: ${limit.taken}${most} are taken${position ? `, and it is number ${position} in the line` : ''}.`];
}

/** The same in a few words, for a list. */
export function nextShort(record) {
  const { what, at } = record.next;
  if (what === 'deleted') return record.ended_at ? ['ended ', near(record.ended_at)] : '';
  const held = record.next.paused && what !== 'queue_paused' ? ', its queue is paused' : '';
  return [what.replaceAll('_', ' '), at ? [' ', near(at)] : '', held];
}

/** What an execution waits for, one of its waits. */
export function wait(one) {
  const name = one.name ? ` ${one.name}` : '';
  const limit = one.until ? ', at most for a time' : ', without a time limit';
  if (one.callback) return `the callback ${one.callback}${limit}`;
  if (one.event) return `the event ${one.event}${limit}`;
  switch (one.kind) {
    case 'step': return `the remote step${name}`;
    case 'child': return `the child${name}`;
    case 'timer': return `the timer${name}`;
    case 'attempt': return `attempt ${one.attempt} of the step${name}`;
    case 'retry': return `the next attempt of the step${name}`;
    case 'event': return `an event whose name isn’t known${limit}`;
    default: return `${one.kind}${name}`;
  }
}

/** What failures are grouped by: the workflow or the kind of task, and the code of the error. An execution whose deadline passed
 * has no code that an operation could select by, but a status. */
export function failure(what, of, code) {
  const status = code ? null : 'timed_out';
  return { what, of, code: code ?? status, status, id: [what, of, ...(status ? ['status'] : []), code ?? status].join(' ') };
}

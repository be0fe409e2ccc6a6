// Turns the entries of a timeline into lanes: one for each step, child, timer or event, with bars and marks on the time axis.
// Nothing here draws.

import { millis } from '../time.js';

/** How a step or child ended, by the last part of its entry's kind, as the tone of its bar. */
const ENDINGS = {
  completed: 'done', failed: 'failed', exhausted: 'failed', timed_out: 'failed', deadline_exceeded: 'failed', cancelled: 'cancelled',
  result_expired: 'failed', abandoned: 'cancelled', cancel_requested: 'cancelled', terminated: 'cancelled',
};
const TIMER_ENDINGS = { timer_fired: 'done', wait_ended: 'done', wait_timed_out: 'failed', timer_cancelled: 'cancelled' };
/** Bars in which work runs, or waits for a worker. All other time can be folded. */
const BUSY = new Set(['attempt', 'remote', 'turn']);

/** The lanes of these entries, in the order in which they begin. Bars that are open end at `until`, in milliseconds. */
export function lanesOf(entries, until) {
  const lanes = new Map();
  const lane = (kind, name) => {
    const key = `${kind} ${name}`;
    if (!lanes.has(key)) lanes.set(key, { key, kind, name, bars: [], marks: [], entries: [], open: null, free: null, status: '' });
    return lanes.get(key);
  };
  for (const entry of entries) {
    const at = millis(entry.at);
    const on = laneOf(entry, lane);
    on.entries.push(entry);
    place(on, entry, at);
  }
  const all = [...lanes.values()];
  for (const one of all) {
    if (one.open) close(one, until, null);
  }
  return all;
}

function laneOf(entry, lane) {
  const { kind, name } = entry;
  // The name of a child's entry begins with its kind.
  if (/^child_/.test(kind)) return lane('child', name.replace(/^child:/, ''));
  if (/^step_/.test(kind)) return lane('step', name);
  if (kind === 'event_sent' || kind === 'events_cleared') return lane('event', entry.event);
  if (/^(timer|wait)_/.test(kind)) return lane('timer', name);
  if (kind === 'event_awaited') return lane('timer', entry.event ? `event ${entry.event}` : 'an event');
  if (kind === 'captured') return lane('value', name);
  if (kind === 'turn_started' || kind === 'turn_lost') return lane('turns', 'turns');
  if (kind === 'on_failure_started' || kind === 'on_cancel_started') return lane('handler', kind.replace('_started', ''));
  return lane('execution', 'execution');
}

/** Puts an entry on its lane. */
function place(lane, entry, at) {
  const [, ending] = entry.kind.match(/^(?:step|child)_(.+)$/) ?? [];
  if (ending?.startsWith('attempt_')) return attempt(lane, entry, at, ending);
  if (ending === 'started') {
    lane.task = entry.task ?? lane.task;
    lane.execution = entry.execution ?? lane.execution;
    return begin(lane, at, lane.kind === 'child' ? 'child' : 'remote', entry);
  }
  if (ending === 'reopened') {
    Object.assign(lane, { open: null, free: null, status: 'open' });
    return mark(lane, at, 'note', entry);
  }
  if (ending in ENDINGS) return end(lane, entry, at, ENDINGS[ending], ending);
  if (entry.kind in TIMER_ENDINGS) {
    lane.status = entry.kind.replace(/^(timer|wait)_/, '');
    if (lane.open) close(lane, at, TIMER_ENDINGS[entry.kind], entry);
    else mark(lane, at, TIMER_ENDINGS[entry.kind], entry);
    return undefined;
  }
  switch (entry.kind) {
    case 'started':
      begin(lane, at, 'whole', entry);
      return undefined;
    case 'timer_started': case 'event_awaited': begin(lane, at, 'wait', entry); lane.until = entry.until; return undefined;
    case 'turn_started': begin(lane, at, 'turn', entry); return undefined;
    case 'on_failure_started': case 'on_cancel_started': begin(lane, at, 'attempt', entry); return undefined;
    case 'execution_completed': lane.status = 'completed'; close(lane, at, 'whole', entry); return mark(lane, at, 'done', entry);
    case 'execution_failed': case 'execution_timed_out': case 'execution_cancelled':
      lane.status = entry.kind.replace('execution_', '');
      close(lane, at, 'whole', entry);
      return mark(lane, at, lane.status === 'cancelled' ? 'cancelled' : 'failed', entry);
    case 'turn_lost': case 'drift': return mark(lane, at, 'lost', entry);
    default: return mark(lane, at, 'note', entry);
  }
}

function begin(lane, at, tone, entry) {
  lane.open = { from: at, tone, entry };
  lane.status = 'open';
}

/** Ends the open bar. Without a tone it stays what it is, and is open. */
function close(lane, at, tone, entry = null) {
  const open = lane.open;
  if (!open) return;
  const busy = BUSY.has(open.tone);
  lane.bars.push({ from: open.from, to: Math.max(at, open.from), tone: tone ?? open.tone, busy, isOpen: tone === null, entry: entry ?? open.entry });
  lane.open = null;
}

function mark(lane, at, tone, entry) {
  lane.marks.push({ at, tone, entry });
}

/** An attempt of a step: it runs from its start, or from the end of the delay before it. */
function attempt(lane, entry, at, ending) {
  if (ending === 'attempt_started') return begin(lane, at, 'attempt', entry);
  const tone = ending === 'attempt_lost' ? 'lost' : 'failed';
  lane.status = 'retrying';
  if (lane.open) close(lane, at, tone, entry);
  else if (lane.free !== null) lane.bars.push({ from: Math.min(lane.free, at), to: at, tone, busy: true, entry });
  else mark(lane, at, tone, entry);
  if (entry.until) {
    const until = Math.max(millis(entry.until), at);
    lane.bars.push({ from: at, to: until, tone: 'backoff', busy: false, entry });
    lane.free = until;
  }
  return undefined;
}

/** The end of a step or a child. An inline step has no start of its own: it is known from its duration. */
function end(lane, entry, at, tone, ending) {
  lane.status = ending;
  if (lane.open) return close(lane, at, tone, entry);
  const began = entry.duration_ms === undefined ? null : at - entry.duration_ms;
  const first = lane.marks.find((one) => one.tone === 'failed');
  if (began !== null && first && lane.bars.every((bar) => bar.tone === 'backoff' || bar.from >= first.at)) {
    // The first attempt's start is the step's.
    lane.marks.splice(lane.marks.indexOf(first), 1);
    lane.bars.unshift({ from: Math.min(began, first.at), to: first.at, tone: 'failed', busy: true, entry: first.entry });
  }
  // A delay that was still to come when the step ended wasn't waited for.
  for (const bar of lane.bars) bar.to = Math.min(bar.to, at);
  const from = lane.free ?? began;
  if (from === null) mark(lane, at, tone, entry);
  else lane.bars.push({ from: Math.min(from, at), to: at, tone, busy: true, entry });
  lane.free = null;
  return undefined;
}

/** All instants at which something happens, and the times in which work runs. */
export function momentsOf(lanes, until) {
  const moments = [];
  const busy = [];
  for (const lane of lanes) {
    for (const bar of lane.bars) {
      moments.push(bar.from);
      if (!bar.isOpen) moments.push(bar.to);
      if (bar.busy) busy.push([bar.from, bar.to]);
    }
    for (const one of lane.marks) moments.push(one.at);
  }
  // A delay before a retry may end in the future.
  return { moments: moments.filter((at) => at <= until), busy };
}

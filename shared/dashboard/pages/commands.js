// The command of the shell for each call on this page. A test runs them all.

import { settings } from './api.js';

/** By their names, the arguments of `tickover` for each call. */
export const commands = {
  showExecution: (id) => ['execution', 'show', id],
  listExecutions: (workflow, { status, label, error, from } = {}) => [
    'execution', 'list', ...(workflow ? [workflow] : []), ...option('--status', status), ...option('--label', label), ...option('--error', error), ...option('--started-from', from),
  ],
  exportRun: (id, run) => ['execution', 'export', id, '--payloads', ...option('--run', run)],
  timeline: (id, run) => ['execution', 'timeline', id, ...option('--run', run)],
  runs: (id) => ['execution', 'runs', id],
  explain: (id) => ['explain', id],
  cancelExecution: (id) => ['execution', 'cancel', id],
  terminate: (id) => ['execution', 'terminate', id],
  pauseExecution: (id) => ['execution', 'pause', id],
  resumeExecution: (id) => ['execution', 'resume', id],
  restart: (id) => ['execution', 'restart', id],
  rerun: (id) => ['execution', 'rerun', id],
  retryStep: (id, step) => ['execution', 'retry-step', id, step],
  events: (id) => ['execution', 'events', id],
  clearEvents: (id, name) => ['execution', 'clear-events', id, name],
  sendEvent: (id, name, payload) => ['event', id, name, ...(payload ? [payload] : [])],
  start: (workflow, { id, queue, input }) => ['start', workflow, ...option('--id', id), ...option('--queue', queue), ...option('--input', input)],
  describe: (id) => ['describe', id],
  listTasks: ({ queue, status } = {}) => ['list', ...option('--queue', queue), ...option('--status', status)],
  schedule: (queue, kind, { id, input, timeout, retry }) => ['task', queue, kind, ...(input ? [input] : []), ...option('--id', id), ...option('--timeout', timeout), ...option('--retry', retry)],
  scheduleLimited: (queue, kind, limit) => ['task', queue, kind, '--concurrency', limit],
  showLimit: (key) => ['limits', 'show', key],
  setLimit: (key, limit) => ['limits', 'set', key, limit],
  resetRate: (key) => ['limits', 'reset', key],
  unsetLimit: (key) => ['limits', 'unset', key],
  releasePlace: (key, holder) => ['limits', 'release', key, holder],
  cancelTask: (id) => ['cancel', id],
  forceCancelTask: (id) => ['cancel', '--force', id],
  retryTask: (id) => ['retry', id],
  many: (what, action, { ids = [], status = [], ...rest }) => [
    'operation', `on-${what}`, action.replaceAll('_', '-'), ...Object.entries(rest).flatMap(([name, value]) => option(`--${name.replaceAll('_', '-')}`, value)),
    ...status.flatMap((one) => ['--status', one]), ...ids.flatMap((id) => ['--id', id]), ...(action === 'send_event' ? ['--event', 'NAME'] : []),
  ],
  listOperations: () => ['operation', 'list'],
  showOperation: (id) => ['operation', 'show', id],
  stopOperation: (id) => ['operation', 'stop', id],
  listQueues: () => ['queue', 'list'],
  showQueue: (name) => ['queue', 'show', name],
  pauseQueue: (name) => ['queue', 'pause', name],
  resumeQueue: (name) => ['queue', 'resume', name],
  listCrons: () => ['cron', 'list'],
  showCron: (id) => ['cron', 'show', id],
  pauseCron: (id) => ['cron', 'pause', id],
  resumeCron: (id) => ['cron', 'resume', id],
  triggerCron: (id) => ['cron', 'trigger', id],
  deleteCron: (id) => ['cron', 'delete', id],
};

function option(name, value) {
  return value ? [name, value] : [];
}

/** The whole command, to be pasted into a shell. */
export function line(args) {
  return [...program(), ...args].map(quoted).join(' ');
}

/** The program with the options that choose this system. */
function program() {
  if (settings.command.length > 1) return settings.command;
  const isDefault = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\]):7070$/.test(location.origin) && new URL(document.baseURI).pathname === '/';
  return isDefault ? settings.command : [...settings.command, '--endpoint', new URL('.', document.baseURI).href.replace(/\/$/, '')];
}

function quoted(text) {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

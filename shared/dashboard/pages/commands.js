// The command of the shell for each call on this page. A test runs them all.

import { settings } from './api.js';

/** By their names, the arguments of `tickover` for each call. */
export const commands = {
  showExecution: (id, run) => of('execution show', [id], option('--run', run)),
  listExecutions: (workflow, { status, label, error, from, ended_from: ended, stuck, id_prefix: prefix } = {}) => of('execution list', workflow ? [workflow] : [], [
    ...option('--status', status), ...option('--label', label), ...option('--error', error), ...option('--started-from', from), ...option('--ended-from', ended), ...(stuck ? ['--stuck'] : []), ...option('--id-prefix', prefix),
  ]),
  exportRun: (id, run) => of('execution export', [id], ['--payloads', ...option('--run', run)]),
  timeline: (id, run) => of('execution timeline', [id], option('--run', run)),
  runs: (id) => of('execution runs', [id]),
  explain: (id) => of('explain', [id]),
  cancelExecution: (id) => of('execution cancel', [id]),
  terminate: (id) => of('execution terminate', [id]),
  pauseExecution: (id) => of('execution pause', [id]),
  resumeExecution: (id) => of('execution resume', [id]),
  restart: (id) => of('execution restart', [id]),
  rerun: (id) => of('execution rerun', [id]),
  rerunFrom: (id, { from, input, discard } = {}) => of('execution rerun', [id], [...option('--from', from), ...option('--input', input), ...(discard ? ['--discard'] : [])]),
  retryStep: (id, step, input) => of('execution retry-step', [id, step], option('--input', input)),
  events: (id) => of('execution events', [id]),
  clearEvents: (id, name) => of('execution clear-events', [id, name]),
  sendEvent: (id, name, payload, asks) => of('event', [id, name, ...(payload ? [payload] : [])], option('--answer', asks ? '20s' : '')),
  completeCallback: (token, output) => of('callback complete', [token, ...(output ? [output] : [])]),
  failCallback: (token, code) => of('callback fail', [token, code]),
  start: (workflow, { id, queue, input }) => of('start', [workflow], [...option('--id', id), ...option('--queue', queue), ...option('--input', input)]),
  describe: (id) => of('describe', [id]),
  listTasks: ({ queue, status, kind, label, error, ended_from: ended, stuck, id_prefix: prefix } = {}) => [
    'list', ...option('--queue', queue), ...option('--status', status), ...option('--kind', kind), ...option('--label', label), ...option('--error', error), ...option('--ended-from', ended), ...(stuck ? ['--stuck'] : []), ...option('--id-prefix', prefix),
  ],
  schedule: (queue, kind, { id, input, timeout, retry }) => of('task', [queue, kind, ...(input ? [input] : [])], [...option('--id', id), ...option('--timeout', timeout), ...option('--retry', retry)]),
  scheduleLimited: (queue, kind, limit) => of('task', [queue, kind], option('--concurrency', limit)),
  listLimits: () => ['limits', 'list'],
  showLimit: (key) => of('limits show', [key]),
  setLimit: (key, limit) => of('limits set', [key, limit]),
  resetRate: (key) => of('limits reset', [key]),
  unsetLimit: (key) => of('limits unset', [key]),
  releasePlace: (key, holder) => of('limits release', [key, holder]),
  cancelTask: (id) => of('cancel', [id]),
  forceCancelTask: (id) => of('cancel --force', [id]),
  retryTask: (id) => of('retry', [id]),
  many: (what, action, { ids = [], status = [], ...rest }) => [
    'operation', `on-${what}`, action.replaceAll('_', '-'), ...Object.entries(rest).flatMap(([name, value]) => option(`--${name.replaceAll('_', '-')}`, value)),
    ...status.flatMap((one) => ['--status', one]), ...ids.flatMap((id) => option('--id', id)), ...(action === 'send_event' ? ['--event', 'NAME'] : []),
  ],
  listOperations: () => ['operation', 'list'],
  showOperation: (id) => of('operation show', [id]),
  stopOperation: (id) => of('operation stop', [id]),
  overview: () => ['overview'],
  failures: ({ ended_from: from, ended_before: before } = {}) => ['failures', ...option('--ended-from', from), ...option('--ended-before', before)],
  listWorkers: () => ['workers', 'list'],
  history: (queue) => ['history', ...option('--queue', queue)],
  resumeOperation: (id) => of('operation resume', [id]),
  listQueues: () => ['queue', 'list'],
  showQueue: (name) => of('queue show', [name]),
  pauseQueue: (name) => of('queue pause', [name]),
  resumeQueue: (name) => of('queue resume', [name]),
  listCrons: () => ['cron', 'list'],
  showCron: (id) => of('cron show', [id]),
  pauseCron: (id) => of('cron pause', [id]),
  resumeCron: (id) => of('cron resume', [id]),
  triggerCron: (id) => of('cron trigger', [id]),
  deleteCron: (id) => of('cron delete', [id]),
};

function option(name, value) {
  if (!value) return [];
  return String(value).startsWith('-') ? [`${name}=${value}`] : [name, value];
}

/** A command with its values: behind `--` if one of them would be read as an option. */
function of(words, values, options = []) {
  const hasDash = values.some((value) => String(value).startsWith('-'));
  return [...words.split(' '), ...(hasDash ? [...options, '--', ...values] : [...values, ...options])];
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

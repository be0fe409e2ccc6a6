// The page: which view is shown, its data kept fresh, and whether the API answers.

import { Problem, Unreachable, loadSettings, settings } from './api.js';
import { address, h, link, loading, replace, visible } from './dom.js';
import * as hands from './hands.js';
import { isMissing, meaning, problem } from './problem.js';
import { length, refresh, skew } from './time.js';
import * as compare from './views/compare.js';
import * as crons from './views/crons.js';
import * as events from './views/events.js';
import * as execution from './views/execution.js';
import * as executions from './views/executions.js';
import * as failures from './views/failures.js';
import * as limits from './views/limits.js';
import * as operations from './views/operations.js';
import * as overview from './views/overview.js';
import * as queues from './views/queues.js';
import * as start from './views/start.js';
import * as task from './views/task.js';
import * as search from './views/search.js';
import * as tasks from './views/tasks.js';
import * as workers from './views/workers.js';

/** The views by the first part of their addresses. `one` shows a single record. One that is hidden has no link of its own. */
const VIEWS = {
  '': { name: 'Overview', all: overview },
  executions: { name: 'Executions', all: executions, one: execution },
  tasks: { name: 'Tasks', all: tasks, one: task },
  failures: { name: 'Failures', all: failures },
  operations: { name: 'Operations', all: operations, one: operations },
  queues: { name: 'Queues', all: queues },
  workers: { name: 'Workers', all: workers },
  limits: { name: 'Limits', all: limits, one: limits },
  crons: { name: 'Crons', all: crons, one: crons },
  events: { name: 'Events', all: events },
  start: { name: 'Start', all: start },
  search: { name: 'Search', all: search, isHidden: true },
  compare: { name: 'Two runs', all: compare, isHidden: true },
};

/** The longest pause between two tries while the API doesn't answer, in milliseconds. */
const PAUSE_MAX = 10_000;
/** After which time without an answer the page says so, in milliseconds. */
const SLOW_MS = 5000;
/** From which difference on the page says that the clocks disagree, in milliseconds. */
const SKEW_SHOWN = 5000;

/** The mark of the first view with data, for measurements. */
const FIRST_VIEW = 'tickover-first-view';

const main = document.getElementById('main');
const connection = document.getElementById('connection');
let leaving = new AbortController();
/** Loads the data of the view that is shown. */
let reload = () => {};

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, query: Object.fromEntries(new URLSearchParams(query ?? '')) };
}

function open() {
  leaving.abort();
  leaving = new AbortController();
  const { parts, query } = route();
  const [first = '', id] = parts;
  const found = Object.hasOwn(VIEWS, first) ? VIEWS[first] : null;
  const shown = id === undefined ? found?.all : found?.one;
  const title = visible(id ?? found?.name ?? 'No such view');
  document.title = `${title} · Tickover`;
  const heading = h('h1', {}, title);
  const root = h('div', { class: 'view' }, shown ? loading() : null);
  main.replaceChildren(heading, root);
  nav(first);
  hands.unknown();
  reload = () => {};
  connection.replaceChildren();
  if (!shown) {
    replace(root, h('p', {}, 'There is no such view. ', link([''], 'Back to the overview')));
    return;
  }
  shown.show(page(root, heading, id, query, leaving.signal));
}

/** What a view has: its place, its address, and [`live`]. */
function page(root, heading, id, query, signal) {
  const go = (path, values) => { location.hash = address(path, values); };
  /** Changes the view's query without leaving it. */
  const requery = (values) => go([...route().parts], { ...query, ...values });
  /** Keeps values in the address without showing the view anew. */
  const keep = (values) => {
    Object.assign(query, values);
    history.replaceState(null, '', address([...route().parts], query));
  };
  return { root, heading, id, query, signal, go, requery, keep, live: (load, draw, everyMs) => live(load, draw, everyMs, signal) };
}

/** Loads and draws, again and again while the page is visible. Returns a function that does so at once. */
function live(load, draw, everyMs, signal) {
  let failures = 0;
  let drawn = null;
  // Whether there is something to keep while the server refuses.
  let isShown = false;
  let timer = null;
  let running = null;
  const once = async () => {
    const slow = setTimeout(() => (signal.aborted ? null : say(`No answer for ${SLOW_MS / 1000} s: the server is slow.${isShown ? ' What you see may be old.' : ''}`)), SLOW_MS);
    try {
      const data = await load(signal);
      if (signal.aborted) return;
      failures = 0;
      connection.replaceChildren();
      // Nothing is drawn again if nothing has changed: selections and focus stay.
      const text = JSON.stringify(data);
      const isHeld = text !== drawn && hands.isSelecting(main);
      if (text !== drawn && !isHeld) {
        draw(data);
        if (drawn === null) performance.mark(FIRST_VIEW);
        drawn = text;
        isShown = true;
      }
      hands.updated(isHeld);
      showSkew();
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      drawn = null;
      complain(error, draw, failures, isShown);
    } finally {
      clearTimeout(slow);
    }
  };
  const pause = () => (failures === 0 ? Math.max(everyMs, settings.refresh_ms) : Math.min(1000 * 2 ** (failures - 1), PAUSE_MAX));
  const again = async () => {
    clearTimeout(timer);
    running ??= once().finally(() => { running = null; });
    await running;
    if (signal.aborted || (everyMs === null && failures === 0)) return;
    // Whether the page is visible counts when the time has come: it may change until then.
    timer = setTimeout(() => (document.hidden ? wait() : hands.paused() ? null : again()), pause());
  };
  const wait = () => document.addEventListener('visibilitychange', again, { once: true, signal });
  signal.addEventListener('abort', () => clearTimeout(timer));
  reload = again;
  again();
  return async () => {
    // A load that began before a change may not show it.
    await running;
    await again();
  };
}

/** Shows why there is nothing new: beside the last data, or instead of it if there is none or it is gone. */
function complain(error, draw, failures, isShown) {
  const old = `What you see may be old. Trying again in ${Math.min(2 ** (failures - 1), PAUSE_MAX / 1000)} s.`;
  const text = [error.title, error.detail].filter(Boolean).join(': ');
  if (error instanceof Unreachable || (error instanceof Problem && error.isTransient)) {
    say(`${meaning(error)} ${text ? `It says: ${text} ` : ''}${old}`);
  } else if (error instanceof Problem && isShown && !isMissing(error)) {
    connection.replaceChildren(h('div', { class: 'banner wrong' }, problem(error), h('p', {}, old)));
  } else if (error instanceof Problem) {
    connection.replaceChildren();
    draw(error);
  } else {
    console.error(error);
    say(`This page has a defect: ${error.message}`);
  }
}

function say(text) {
  connection.replaceChildren(h('p', { class: 'banner wrong' }, text));
}

function showSkew() {
  const ahead = skew();
  if (Math.abs(ahead) < SKEW_SHOWN) return;
  const text = `This machine’s clock is ${length(Math.abs(ahead))} ${ahead > 0 ? 'behind' : 'ahead of'} the server’s. Times to go count by the server’s clock.`;
  connection.replaceChildren(h('p', { class: 'banner' }, text));
}

function nav(current) {
  const items = Object.entries(VIEWS).filter(([, view]) => !view.isHidden).map(([path, { name }]) => link([path], name, { 'aria-current': path === current ? 'page' : null }));
  replace(document.getElementById('views'), items);
}

/** Finds what has an id, an execution, a task or a cron; or else what has an id that begins so. Or what has a label. */
function find(text) {
  location.hash = text.includes('=') ? address(['search'], { q: text }) : address(['executions', text], { find: '1' });
}

document.getElementById('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const field = document.getElementById('search-id');
  if (field.value.trim()) find(field.value.trim());
  field.value = '';
});
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
let shownPath = '';
window.addEventListener('hashchange', () => {
  const path = route().parts.join('/');
  const field = path === shownPath ? document.activeElement?.id : '';
  shownPath = path;
  open();
  // A filter keeps the focus; a new view begins at its heading.
  (field ? document.getElementById(field) ?? main : main).focus();
});
setInterval(() => { refresh(); hands.tick(); }, 1000);
hands.begin(() => reload(), () => open());

async function begin() {
  try {
    await loadSettings();
  } catch {
    setTimeout(begin, 2000);
    connection.replaceChildren(h('p', { class: 'banner wrong' }, 'The dashboard’s server doesn’t answer. Trying again in 2 s.'));
    return;
  }
  const place = settings.place ?? location.host;
  replace(document.getElementById('place'), place, settings.read_only ? h('span', { class: 'badge paused' }, 'read-only') : null);
  shownPath = route().parts.join('/');
  open();
}
begin();

// What works in every view: how old the data is and a pause, times in UTC, and the keys.

import { h, replace } from './dom.js';
import { distance, isUtc, setUtc } from './time.js';

const KEYS = [
  ['/', 'go to an id'], ['?', 'show these keys'], ['p', 'pause and go on'], ['u', 'times in UTC, or of this browser’s zone'], ['Tab', 'to the next control'],
  ['↓ ↑', 'to the next lane of a timeline'], ['Page down, Page up', 'ten lanes further'], ['Home, End', 'to the first and the last lane'], ['+ −', 'zoom the timeline'], ['Esc', 'close a dialog'],
];

let updatedAt = null;
let isHeld = false;
let isPaused = false;
let onResume = () => {};
let onZone = () => {};

const age = h('span', { id: 'updated', class: 'quiet' });
const pause = h('button', { type: 'button', id: 'pause', title: 'Pause and go on (p)', onclick: () => setPaused(!isPaused) });
const zone = h('button', { type: 'button', id: 'zone', title: 'Times in UTC, or of this browser’s zone (u)', onclick: () => setZone() });
const help = h('button', { type: 'button', id: 'help', title: 'Keys (?)', 'aria-label': 'Keys', onclick: () => showKeys() }, '?');

export const paused = () => isPaused;

/** Says that the data is of this moment, or that it is but isn't shown while a text is selected. */
export function updated(held = false) {
  if (!held) updatedAt = performance.now();
  isHeld = held;
  tick();
}

/** Forgets how old the data of another view was. */
export function unknown() {
  updatedAt = null;
  isHeld = false;
  tick();
}

/** Brings the age up to date. */
export function tick() {
  const text = updatedAt === null ? '' : `updated ${distance(updatedAt - performance.now())}${isPaused ? ', paused' : isHeld ? ', held while a text is selected' : ''}`;
  if (age.textContent !== text) age.textContent = text;
}

function setPaused(value) {
  isPaused = value;
  labels();
  tick();
  if (!value) onResume();
}

function setZone() {
  setUtc(!isUtc());
  labels();
  onZone();
}

function labels() {
  pause.textContent = isPaused ? 'Go on' : 'Pause';
  pause.setAttribute('aria-pressed', String(isPaused));
  zone.textContent = 'UTC';
  zone.setAttribute('aria-pressed', String(isUtc()));
}

function showKeys() {
  const dialog = h('dialog', { 'aria-labelledby': 'keys-title', onclose: () => dialog.remove() },
    h('h2', { id: 'keys-title' }, 'Keys'),
    h('dl', { class: 'facts' }, KEYS.map(([key, what]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)))),
    h('div', { class: 'buttons' }, h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, 'Close')));
  document.body.append(dialog);
  dialog.showModal();
}

/** Puts the controls into the header. `resume` loads at once, `redraw` shows all instants anew. */
export function begin(resume, redraw) {
  [onResume, onZone] = [resume, redraw];
  labels();
  replace(document.getElementById('hands'), age, pause, zone, help);
  document.addEventListener('keydown', (event) => {
    if (event.target.closest('input, textarea, select, dialog') || event.ctrlKey || event.metaKey || event.altKey) return;
    const run = { '/': () => document.getElementById('search-id').focus(), '?': showKeys, p: () => setPaused(!isPaused), u: setZone }[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });
}

/** Whether a text is selected in an element: it isn't drawn anew then. */
export function isSelecting(element) {
  const selection = document.getSelection();
  return !selection.isCollapsed && selection.toString() !== '' && element.contains(selection.anchorNode) && !document.activeElement?.matches('input, textarea');
}

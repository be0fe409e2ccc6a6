// Draws a timeline: lanes of bars over a time axis that can be zoomed, and the details of the lane that was chosen. Only the
// lanes in sight are elements of the page.

import { download } from '../payload.js';
import { h, replace, table } from '../dom.js';
import { at, length, local, millis, now, utc } from '../time.js';
import { details, inWords } from './details.js';
import { fanOf, folded } from './fold.js';
import { lanesOf, momentsOf } from './lanes.js';
import { Scale } from './scale.js';

/** The height of a lane in pixels, as in the style sheet. */
const ROW = 26;
/** Lanes above and below those in sight that are drawn as well. */
const SPARE = 6;
/** How many entries a page of the list has. */
const LISTED = 100;
/** The smallest part of the axis that can be shown. */
const WINDOW_MIN = 1e-6;
const TICKS = 5;

const KINDS = { execution: '', step: 'step', child: 'child', timer: 'wait', event: 'event', value: 'value', turns: '', handler: '' };

export class Timeline {
  #id;
  #keep;
  #opened;
  #wanted;
  #isLinked;
  #entries = [];
  #lanes = [];
  #shown = [];
  #scale = null;
  #window = [0, 1];
  #isFolding = true;
  #isList = false;
  #page = 0;
  #chosen = null;
  #filter = '';
  #axis = h('div', { class: 'axis', 'aria-hidden': 'true' });
  #spacer = h('ul', { class: 'lanes', 'aria-label': 'Lanes of the timeline' });
  #viewport = h('div', { class: 'viewport', 'data-key': 'lanes' }, this.#spacer);
  #list = h('div', { class: 'list' });
  #details = h('div', { class: 'details', 'aria-live': 'polite' });
  #range = h('span', { class: 'quiet', id: 'timeline-range' });
  #tools = h('div', { class: 'tools' });

  /** A timeline of the page's record. The zoom, the chosen lane and the mode are in the page's address. */
  constructor({ id, query, keep }) {
    [this.#id, this.#keep] = [id, keep];
    const { as, gaps, fan, lane, zoom, lanes = '' } = query;
    [this.#isList, this.#isFolding, this.#opened, this.#filter] = [as === 'list', gaps !== 'shown', fan ?? fanOf(lane), lanes];
    this.#isLinked = Boolean(lane);
    this.#chosen = lane ? { key: lane, entry: null } : null;
    this.#wanted = zoom?.split('-').map(Number) ?? null;
    this.element = h('div', { class: 'timeline' }, this.#tools, this.#axis, this.#viewport, this.#list, this.#details);
    this.#viewport.addEventListener('scroll', () => this.#drawLanes(), { passive: true });
    this.#viewport.addEventListener('click', (event) => this.#pressed(event));
    this.#viewport.addEventListener('keydown', (event) => this.#key(event));
    this.#viewport.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    this.#brush();
    this.#drawTools();
  }

  /** Shows these entries. The zoom, the chosen lane and the scroll position stay. */
  update(execution, entries) {
    this.#entries = entries;
    const until = execution.ended_at ? millis(execution.ended_at) : now();
    const from = millis(execution.created_at);
    const last = entries.length > 0 ? millis(entries.at(-1).at) : from;
    this.#lanes = lanesOf(entries, Math.max(until, last));
    this.#measure = () => {
      const { moments, busy } = momentsOf(this.#lanes, Math.max(until, last));
      this.#scale = new Scale(from, Math.max(until, last), moments, busy, this.#isFolding);
    };
    this.#measure();
    if (this.#wanted) this.#window = this.#wanted.map((instant) => this.#scale.position(instant));
    this.#wanted = null;
    if (!(this.#window[1] > this.#window[0])) this.#window = [0, 1];
    this.#draw();
    if (this.#isLinked) this.#show();
    this.#isLinked = false;
  }

  /** Brings the lane that the address names into sight. */
  #show() {
    const index = this.#shown.findIndex((lane) => lane.key === this.#chosen?.key);
    if (index < 0) return;
    this.#viewport.scrollTop = index * ROW;
    this.element.scrollIntoView({ block: 'nearest' });
  }

  #measure = () => {};

  #draw() {
    const text = this.#filter.toLowerCase();
    this.#shown = text ? this.#lanes.filter((lane) => `${lane.kind} ${lane.name} ${lane.status}`.toLowerCase().includes(text)) : folded(this.#lanes, this.#opened);
    for (const [element, isShown] of [[this.#axis, !this.#isList], [this.#viewport, !this.#isList], [this.#list, this.#isList]]) element.hidden = !isShown;
    if (this.#isList) this.#drawList();
    else {
      this.#spacer.style.height = `${this.#shown.length * ROW}px`;
      this.#drawAxis();
      this.#drawLanes(true);
    }
    const [from, to] = this.#window.map((position) => this.#scale.instant(position));
    this.#range.textContent = `${this.#shown.length.toLocaleString()} lanes, ${this.#entries.length.toLocaleString()} entries. From ${local(from)} to ${local(to)}: ${length(to - from)}`;
    this.#drawDetails();
  }

  #drawTools() {
    const press = (label, text, run) => h('button', { type: 'button', 'aria-label': label, title: label, onclick: run }, text);
    const fold = h('input', { type: 'checkbox', id: 'fold', checked: this.#isFolding, onchange: () => { this.#isFolding = fold.checked; this.#keep({ gaps: fold.checked ? null : 'shown' }); this.#measure(); this.#zoomTo(0, 1); } });
    const list = h('input', { type: 'checkbox', id: 'as-list', checked: this.#isList, onchange: () => { this.#isList = list.checked; this.#keep({ as: list.checked ? 'list' : null }); this.#draw(); } });
    const filter = h('input', { type: 'search', id: 'lane-filter', value: this.#filter, placeholder: 'name or status', autocomplete: 'off', oninput: () => { this.#filter = filter.value; this.#keep({ lanes: filter.value }); this.#page = 0; this.#draw(); } });
    this.#tools.append(
      press('Zoom in', '+', () => this.#zoom(0.5)), press('Zoom out', '−', () => this.#zoom(2)), press('Earlier', '◀', () => this.#pan(-0.5)),
      press('Later', '▶', () => this.#pan(0.5)), press('Show all of the timeline', 'All', () => this.#zoomTo(0, 1)),
      h('label', { for: 'fold' }, fold, ' Fold gaps'), h('label', { for: 'as-list' }, list, ' As a list'),
      h('label', { for: 'lane-filter' }, 'Filter ', filter), this.#range);
  }

  #zoom(factor, around = 0.5) {
    const [from, to] = this.#window;
    const size = Math.min(Math.max((to - from) * factor, WINDOW_MIN), 1);
    const start = from + (to - from) * around - size * around;
    this.#zoomTo(start, start + size);
  }

  #pan(share) {
    const [from, to] = this.#window;
    this.#zoomTo(from + (to - from) * share, to + (to - from) * share);
  }

  #zoomTo(from, to) {
    const size = Math.min(to - from, 1);
    const start = Math.min(Math.max(from, 0), 1 - size);
    this.#window = [start, start + size];
    this.#keep({ zoom: size < 1 ? this.#window.map((position) => Math.round(this.#scale.instant(position))).join('-') : null });
    this.#draw();
  }

  /** The place of an instant on the axis in sight, in percent. */
  #percent(instant) {
    const [from, to] = this.#window;
    return ((this.#scale.position(instant) - from) / (to - from)) * 100;
  }

  #drawAxis() {
    const [from, to] = this.#window;
    const marks = [];
    const span = this.#scale.instant(to) - this.#scale.instant(from);
    let before = '';
    for (let tick = 0; tick < TICKS; tick += 1) {
      const position = from + ((to - from) * tick) / TICKS;
      const instant = this.#scale.instant(position);
      const text = span < 10_000 ? `+${((instant - this.#scale.from) / 1000).toFixed(span < 100 ? 4 : 2)} s` : local(instant);
      // A fold has its length instead of instants; equal texts say nothing.
      if (text === before || this.#scale.pieces.some((one) => one.isFold && position > one.start && position < one.end)) continue;
      before = text;
      const mark = h('span', { class: 'tick', title: utc(instant) }, text);
      mark.style.left = `${(tick / TICKS) * 100}%`;
      marks.push(mark);
    }
    for (const piece of this.#scale.pieces.filter((one) => one.isFold && one.end > from && one.start < to)) {
      const fold = h('span', { class: 'fold', title: `${length(piece.to - piece.from)} in which nothing runs, folded` }, length(piece.to - piece.from));
      fold.style.left = `${this.#percent(piece.from)}%`;
      fold.style.width = `${((piece.end - piece.start) / (to - from)) * 100}%`;
      marks.push(fold);
    }
    this.#axis.replaceChildren(h('div', { class: 'track' }, marks));
  }

  /** Draws the lanes in sight. */
  #drawLanes(isForced = false) {
    const first = Math.max(Math.floor(this.#viewport.scrollTop / ROW) - SPARE, 0);
    const last = Math.min(first + Math.ceil((this.#viewport.clientHeight || 480) / ROW) + 2 * SPARE, this.#shown.length);
    const range = `${first} ${last}`;
    if (!isForced && this.#spacer.dataset.range === range) return;
    this.#spacer.dataset.range = range;
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.#row(this.#shown[index], index));
    replace(this.#spacer, rows);
  }

  #row(lane, index) {
    const track = h('span', { class: 'track' });
    const drawn = new Set();
    lane.bars.forEach((bar, number) => this.#put(track, drawn, bar.from, bar.to, `bar ${bar.tone}${bar.isOpen ? ' open' : ''}`, `bar ${number}`, bar.entry));
    lane.marks.forEach((one, number) => this.#put(track, drawn, one.at, one.at, `mark ${one.tone}`, `mark ${number}`, one.entry));
    const kind = KINDS[lane.kind];
    const row = h('li', { 'aria-setsize': this.#shown.length, 'aria-posinset': index + 1 },
      h('button', { type: 'button', class: 'lane', 'data-key': `lane ${lane.key}`, 'data-index': index, ...(lane.isOpened === undefined ? { 'aria-pressed': String(this.#chosen?.key === lane.key) } : { 'aria-expanded': String(lane.isOpened), title: `${lane.name}: ${lane.status}` }), 'aria-label': spoken(lane) },
        h('span', { class: 'name' }, kind ? [h('span', { class: 'kind' }, kind), ' '] : null, lane.isOpened === undefined ? '' : lane.isOpened ? '▾ ' : '▸ ', lane.name, lane.isOpened === undefined ? null : h('span', { class: 'kind' }, `, ${lane.status}`)), track));
    row.style.top = `${index * ROW}px`;
    return row;
  }

  /** Draws a bar or a mark, unless it is out of sight, or looks like one that is there. */
  #put(track, drawn, from, to, style, part, entry) {
    const [left, right] = [this.#percent(from), this.#percent(to)];
    if (right < 0 || left > 100) return;
    const place = `${style} ${left.toFixed(1)} ${right.toFixed(1)}`;
    if (drawn.has(place)) return;
    drawn.add(place);
    const shape = h('span', { class: style, 'data-part': part, title: `${inWords(entry)}${to > from ? `, ${length(to - from)}` : ''}` });
    const start = Math.max(left, -1);
    shape.style.left = `${start}%`;
    if (to > from || style.startsWith('bar')) shape.style.width = `${Math.min(right, 101) - start}%`;
    track.append(shape);
  }

  #pressed(event) {
    const button = event.target.closest('.lane');
    if (!button) return;
    const lane = this.#shown[Number(button.dataset.index)];
    if (lane.isOpened !== undefined) {
      this.#opened = lane.isOpened ? null : lane.key;
      this.#keep({ fan: this.#opened });
      this.#draw();
      return;
    }
    const [kind, number] = (event.target.dataset.part ?? '').split(' ');
    const part = kind === 'bar' ? lane.bars[number] : kind === 'mark' ? lane.marks[number] : null;
    const isSame = this.#chosen?.key === lane.key && !part;
    this.#chosen = isSame ? null : { key: lane.key, entry: part?.entry ?? null };
    this.#keep({ lane: this.#chosen?.key });
    this.#drawLanes(true);
    this.#drawDetails();
  }

  /** Arrow keys move from lane to lane, plus and minus zoom. */
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    const button = event.target.closest('.lane');
    if (step && button) {
      event.preventDefault();
      const index = Math.min(Math.max(Number(button.dataset.index) + step, 0), this.#shown.length - 1);
      const top = index * ROW;
      if (top < this.#viewport.scrollTop) this.#viewport.scrollTop = top;
      const bottom = top + ROW - this.#viewport.clientHeight;
      if (bottom > this.#viewport.scrollTop) this.#viewport.scrollTop = bottom;
      this.#drawLanes(true);
      this.#spacer.querySelector(`[data-index="${index}"]`)?.focus({ preventScroll: true });
    } else if (event.key === '+' || event.key === '-') {
      this.#zoom(event.key === '+' ? 0.5 : 2);
    }
  }

  #wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const track = this.#axis.firstChild.getBoundingClientRect();
    this.#zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - track.left) / track.width);
  }

  /** A range that is dragged on the axis is zoomed to. */
  #brush() {
    let start = null;
    const position = (event) => {
      const track = this.#axis.firstChild.getBoundingClientRect();
      const [from, to] = this.#window;
      return from + Math.min(Math.max((event.clientX - track.left) / track.width, 0), 1) * (to - from);
    };
    this.#axis.addEventListener('pointerdown', (event) => { start = position(event); this.#axis.setPointerCapture(event.pointerId); });
    this.#axis.addEventListener('pointerup', (event) => {
      const range = [start, position(event)].sort((one, other) => one - other);
      if (start !== null && range[1] - range[0] > (this.#window[1] - this.#window[0]) / 50) this.#zoomTo(...range);
      start = null;
    });
    this.#axis.addEventListener('dblclick', () => this.#zoomTo(0, 1));
  }

  #drawList() {
    const text = this.#filter.toLowerCase();
    const found = this.#entries.filter((entry) => !text || inWords(entry).toLowerCase().includes(text));
    const last = Math.max(Math.ceil(found.length / LISTED) - 1, 0);
    this.#page = Math.min(this.#page, last);
    const turn = (page) => () => { this.#page = page; this.#drawList(); };
    const rows = found.slice(this.#page * LISTED, (this.#page + 1) * LISTED).map((entry) => [
      at(entry.at), `+${length(millis(entry.at) - this.#scale.from)}`, inWords(entry), entry.duration_ms === undefined ? '' : length(entry.duration_ms),
    ]);
    replace(this.#list,
      h('div', { class: 'tools' },
        h('button', { type: 'button', 'data-key': 'earlier-entries', disabled: this.#page === 0, onclick: turn(this.#page - 1) }, 'Earlier'),
        h('button', { type: 'button', 'data-key': 'later-entries', disabled: this.#page === last, onclick: turn(this.#page + 1) }, 'Later'),
        h('span', { class: 'quiet' }, `Page ${this.#page + 1} of ${last + 1}`),
        download(JSON.stringify(this.#entries, null, 1), `${this.#id}-timeline.json`)),
      table('Entries of the timeline', ['When', 'Since the start', 'What', 'Took'], rows));
  }

  #drawDetails() {
    const lane = this.#chosen && this.#lanes.find((one) => one.key === this.#chosen.key);
    const drawn = lane ? `${lane.key} ${lane.entries.length} ${lane.status} ${this.#chosen.entry?.at}` : '';
    if (this.#details.dataset.drawn === drawn) return;
    this.#details.dataset.drawn = drawn;
    if (lane) details(this.#details, lane, this.#chosen.entry, this.#scale.from);
    else this.#details.replaceChildren();
  }
}

/** A lane for a screen reader. */
function spoken(lane) {
  const took = lane.bars.length > 0 ? `, ${length(lane.bars.at(-1).to - lane.bars[0].from)}` : '';
  const attempts = lane.bars.filter((bar) => bar.tone === 'failed' || bar.tone === 'lost').length;
  return [KINDS[lane.kind], lane.name, lane.status, attempts > 0 ? `${attempts} failed or lost` : ''].filter(Boolean).join(' ') + took;
}

// Parts that the lists share: filters, pages, rows.

import { address, badge, h, link } from './dom.js';
import { near, now } from './time.js';
import { errorText } from './words.js';

/** How many records a page of a list has. */
export const PAGE = 50;

/** A choice whose change is a new address. */
export function choice(id, label, options, value, change) {
  const select = h('select', { id, onchange: () => change(select.value) }, options.map(([key, text]) => h('option', { value: key, selected: key === value }, text)));
  return h('div', { class: 'field' }, h('label', { for: id }, label), select);
}

/** Which of the shown rows a text leaves: those that have it in their id, labels or error. */
export function rowFilter(page, draw) {
  const input = h('input', {
    id: 'rows', type: 'search', value: page.rows ?? '', autocomplete: 'off', spellcheck: 'false', placeholder: 'id, label, error',
    oninput: () => { page.rows = input.value; draw(); },
  });
  return h('div', { class: 'field' }, h('label', { for: 'rows' }, 'Filter these rows'), input);
}

/** Whether a record has the text that the rows are filtered by. */
export function matches(record, text) {
  if (!text) return true;
  const searched = [record.id, record.workflow, record.kind, record.queue, JSON.stringify(record.labels ?? {}), record.error ? errorText(record.error) : ''];
  return searched.join(' ').toLowerCase().includes(text.toLowerCase());
}

/** Buttons to the first and the next page. A page is an address of its own, so the browser's own back button works. `kept` is
 * what the next page needs besides the cursor. */
export function pages(page, cursor, kept = {}) {
  if (!cursor && !page.query.cursor) return null;
  return h('div', { class: 'buttons' },
    h('button', { type: 'button', id: 'first-page', disabled: !page.query.cursor, onclick: () => page.requery({ cursor: null }) }, 'First page'),
    h('button', { type: 'button', id: 'next-page', disabled: !cursor, onclick: () => page.requery({ cursor, ...kept }) }, 'Next page'));
}

/** A label as a link to all that has it. */
export const labelLink = (name, value) => h('a', { class: 'label', href: address(['search'], { q: `${name}=${value}` }) }, `${name}=${value}`);

/** A field whose text is a part of the address. */
export function finder(page, name, text, example, value) {
  const input = h('input', { id: `by-${name}`, value, placeholder: example, autocomplete: 'off', spellcheck: 'false' });
  const asked = (event) => {
    event.preventDefault();
    page.requery({ [name]: input.value.trim(), cursor: null });
  };
  return h('form', { class: 'field', onsubmit: asked }, h('label', { for: `by-${name}` }, text), h('span', { class: 'joined' }, input, h('button', { 'aria-label': `Find by ${text.toLowerCase()}` }, 'Find')));
}

/** The choices of a time, in hours. */
export const ENDED = [['', 'Any time'], ['1', 'Last hour'], ['24', 'Last 24 hours'], ['168', 'Last 7 days']];
/** The whole minute this many hours ago: it moves with the time. */
export const hoursAgo = (hours) => new Date(Math.floor(now() / 60_000 - Number(hours) * 60) * 60_000).toISOString();
/** From which end on a list has records. Further pages keep the instant of the first one. */
export const endedFrom = ({ ended, ended_from: from, cursor }) => (ended && !cursor ? hoursAgo(ended) : from ?? '');
export const endChoice = (page) => choice('ended', 'Ended', ENDED, page.query.ended ?? '', (value) => page.requery({ ended: value, ended_from: null, cursor: null }));

/** Why a record doesn’t go on before somebody acts, if that is known. */
function held({ status, stuck, queue, ended_at: ended, next }) {
  if (ended) return '';
  if (stuck) return errorText(stuck);
  if (status === 'paused') return 'An operator holds it.';
  if (next.what === 'queue_paused' || next.paused) return `Its queue ${queue} is paused.`;
  return next.unprovided ? `No worker provides ${next.unprovided.join(', ')}.` : '';
}

/** A record’s status, and below it why it waits for somebody. */
export function statusCell(record) {
  const why = held(record);
  return [badge(record.status), why && h('div', { class: 'error', title: why }, why)];
}

/** Cells that lists of tasks and executions share. */
export const idCell = (record) => link([record.workflow ? 'executions' : 'tasks', record.id], record.id, { class: 'id', 'data-key': `row ${record.id}` });
export const errorCell = (record) => (record.error ? h('span', { class: 'error', title: record.error.message }, errorText(record.error)) : '');
export const labelsCell = (record) => Object.entries(record.labels ?? {}).map(([name, value]) => labelLink(name, value));
export const startedCell = (record) => near(record.created_at);

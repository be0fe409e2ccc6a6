// Parts that the lists share: filters, pages, rows.

import { h, link } from './dom.js';
import { near } from './time.js';
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

/** Buttons to the first and the next page. A page is an address of its own, so the browser's own back button works. */
export function pages(page, cursor) {
  if (!cursor && !page.query.cursor) return null;
  return h('div', { class: 'buttons' },
    h('button', { type: 'button', id: 'first-page', disabled: !page.query.cursor, onclick: () => page.requery({ cursor: null }) }, 'First page'),
    h('button', { type: 'button', id: 'next-page', disabled: !cursor, onclick: () => page.requery({ cursor }) }, 'Next page'));
}

/** Cells that lists of tasks and executions share. */
export const idCell = (record) => link([record.workflow ? 'executions' : 'tasks', record.id], record.id, { class: 'id', 'data-key': `row ${record.id}` });
export const errorCell = (record) => (record.error ? h('span', { class: 'error', title: record.error.message }, errorText(record.error)) : '');
export const startedCell = (record) => near(record.created_at);

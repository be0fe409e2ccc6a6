// Payloads: inputs, outputs, events. They are shown as text, and cut if they are huge.

import { copier, h } from './dom.js';

/** How many characters of a payload are shown. */
const SHOWN = 20_000;

/** JSON with indents. Numbers are as they were written. */
const pretty = (value) => JSON.stringify(value, null, 2);

/** A payload under a heading of its own, in a part that can be folded. `undefined` is a payload that isn't there. */
export function payload(title, value, name, isOpen = true) {
  if (value === undefined) return null;
  const text = pretty(value);
  const isCut = text.length > SHOWN;
  return h('details', { class: 'payload', open: isOpen, 'data-key': `payload ${title}` },
    h('summary', {}, title, h('span', { class: 'quiet' }, ` ${size(text.length)}`)),
    h('div', { class: 'tools' }, copier(text, title.toLowerCase()), download(text, `${name}-${title.toLowerCase().replaceAll(' ', '-')}.json`)),
    h('pre', { tabindex: '0', 'aria-label': title, 'data-key': `text ${title}` }, isCut ? `${text.slice(0, SHOWN)}…` : text),
    isCut ? h('p', { class: 'quiet' }, `The first ${SHOWN.toLocaleString()} of ${text.length.toLocaleString()} characters. Download it to see all.`) : null);
}

/** An error with a button that copies it. Its message is short: the system has cut it. */
export function failure({ code, message = '' }) {
  return h('div', { class: 'problem' }, h('strong', {}, code), ` ${message} `, copier(message ? `${code}: ${message}` : code, 'error'));
}

/** Saves a text as a file. */
export function save(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  h('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A button that saves a text as a file. */
export function download(text, name) {
  return h('button', { type: 'button', class: 'copy', onclick: () => save(text, name), 'aria-label': `Download ${name}` }, 'Download');
}

function size(characters) {
  return characters < 1000 ? `${characters} characters` : `${(characters / 1000).toFixed(1)} thousand characters`;
}

/** Checks JSON while it is typed. Returns a field whose `value()` is the text, or `null` if it isn't JSON. */
export function jsonField(id, label, { rows = 6, value = '', hint = '' } = {}) {
  const verdict = h('p', { id: `${id}-verdict`, class: 'quiet', role: 'status' });
  const area = h('textarea', { id, name: id, rows, spellcheck: 'false', 'aria-describedby': `${id}-verdict` });
  area.value = value;
  const check = () => {
    const text = area.value.trim();
    let wrong = null;
    try {
      if (text) JSON.parse(text);
    } catch (error) {
      wrong = error.message;
    }
    area.setAttribute('aria-invalid', String(wrong !== null));
    verdict.textContent = wrong ? `Not JSON: ${wrong}` : text ? 'JSON' : hint;
    verdict.className = wrong ? 'wrong' : 'quiet';
    return wrong ? null : text;
  };
  area.addEventListener('input', check);
  check();
  return { element: h('div', { class: 'field' }, h('label', { for: id }, label), area, verdict), value: check, area };
}

/** A field for a line of text. */
export function textField(id, label, { value = '', hint = '', required = false, list = null } = {}) {
  const input = h('input', { id, name: id, required, autocomplete: 'off', spellcheck: 'false', list: list ? `${id}-list` : null, 'aria-describedby': hint ? `${id}-hint` : null });
  input.value = value;
  const options = list ? h('datalist', { id: `${id}-list` }, list.map((one) => h('option', { value: one }))) : null;
  const element = h('div', { class: 'field' }, h('label', { for: id }, label), input, options, hint ? h('p', { id: `${id}-hint`, class: 'quiet' }, hint) : null);
  return { element, input, value: () => input.value.trim() };
}

// Builds the page's elements. Text is only ever set as text: nothing in these pages reads markup, and the content security
// policy refuses the calls that do.

/** Makes an element. `on…` attributes are listeners; `true` sets an attribute without a value; `null` and `false` leave it
 * out. Children are elements, texts, or lists of them. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : key === 'title' || key === 'aria-label' ? visible(value) : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== '') element.append(typeof child === 'string' ? visible(child) : child);
  }
}

/** Characters that change the direction of the text around them: they could make an id look like another one. */
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

/** A text in which such characters are shown instead of obeyed. */
export const visible = (text) => String(text).replace(DIRECTIONS, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase()}⟩`);

/** Replaces an element's content. The focus, what was typed, open details and scroll positions stay, by the `id` or `data-key`
 * that the elements have. */
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  const open = new Map([...element.querySelectorAll('details[data-key]')].map((one) => [one.dataset.key, one.open]));
  const scrolled = [...element.querySelectorAll('[data-key]')].filter((one) => one.scrollTop > 0 || one.scrollLeft > 0)
    .map((one) => [one.dataset.key, one.scrollTop, one.scrollLeft]);
  const typed = [...element.querySelectorAll('input[id]:not([type=checkbox]), textarea[id]')].filter((one) => one.value !== one.defaultValue || one.id === focused)
    .map((one) => [one.id, one.value, one.selectionStart, one.selectionEnd]);
  element.replaceChildren();
  append(element, children);
  const find = (key) => element.querySelector(`[data-key="${CSS.escape(key)}"]`) ?? element.querySelector(`#${CSS.escape(key)}`);
  for (const [key, isOpen] of open) {
    const details = find(key);
    if (details) details.open = isOpen;
  }
  for (const [key, top, left] of scrolled) find(key)?.scrollTo(left, top);
  if (focused) find(focused)?.focus({ preventScroll: true });
  for (const [id, value, start, end] of typed) {
    const field = find(id);
    if (!field) continue;
    field.value = value;
    if (id === focused && start !== null) field.setSelectionRange(start, end);
  }
}

function keyOf(element) {
  return element.dataset.key ?? (element.id || null);
}

/** A section with a heading. */
export function section(title, ...children) {
  const id = `part-${title.toLowerCase().replace(/[^a-z]+/g, '-')}`;
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), children);
}

/** Rows of a name and a value; those without a value are left out. */
export function facts(rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return h('dl', { class: 'facts' }, shown.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/** A table. `columns` are the headings; each row is a list of cells. */
export function table(caption, columns, rows) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption, 'data-key': `table ${caption}` },
    h('table', {},
      h('caption', { class: 'hidden' }, caption),
      h('thead', {}, h('tr', {}, columns.map((column) => h('th', { scope: 'col' }, column)))),
      h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell) => h('td', {}, cell)))))));
}

/** What a view shows while it has nothing: why, and how to make the first one. */
export function empty(text, ...more) {
  return h('div', { class: 'empty' }, h('p', {}, text), more);
}

/** What stands where data will be. */
export const loading = () => h('p', { class: 'quiet', role: 'status' }, 'Loading…');

/** A link to a view of this page. */
export function link(path, text, attributes = {}) {
  return h('a', { href: address(path), ...attributes }, text ?? path.at(-1));
}

/** The address of a view: a hash with encoded parts, and a query. */
export function address(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const text = pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : '';
  return `#/${path.map(encodeURIComponent).join('/')}${text}`;
}

/** A status as a word with a colour. The word alone says it. */
export function badge(status) {
  return h('span', { class: `badge ${status}` }, status.replaceAll('_', ' '));
}

/** Says something for a few seconds, also to screen readers. */
export function notify(text, isWrong = false) {
  const notice = h('p', { class: isWrong ? 'wrong' : 'fine' }, text);
  document.getElementById('notices').append(notice);
  setTimeout(() => notice.remove(), 8000);
}

/** The id of a record's trace, by which a tracing system finds the spans of all its work. */
export function trace(record) {
  const id = record.traceparent?.split('-')[1];
  return id ? [h('code', {}, id), ' ', copier(id, 'trace id')] : null;
}

/** A button that copies a text. */
export function copier(text, what) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      notify(`Copied: ${what}`);
    } catch {
      notify('The browser refused to copy; select the text instead.', true);
    }
  };
  return h('button', { type: 'button', class: 'copy', 'aria-label': `Copy ${what}`, title: `Copy ${what}`, onclick: copy }, 'Copy');
}

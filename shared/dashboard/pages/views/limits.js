// Limits by key: who has a key's places, who waits, and what operators change.

import { get, keyPart, put, settings } from '../api.js';
import { RELEASE, button, command, panel, refusal, submit } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, facts, h, link, loading, notify, replace, section, table } from '../dom.js';
import { textField } from '../payload.js';
import { refused } from '../problem.js';
import { near } from '../time.js';
import { who } from '../words.js';

const LIMIT_MAX = 1000;

/** Of a key that may have so many bytes, answers may have only the beginning, which would be another key. */
const CUT_FROM = 45;

/** A link to a key, or only its text if it may be the beginning of a longer one. */
export function keyLink(key, text = key) {
  return new TextEncoder().encode(key).length < CUT_FROM ? link(['limits', key], text) : text === key ? `${key}…` : null;
}

export function show(page) {
  return page.id === undefined ? all(page) : one(page);
}

function all(page) {
  const key = textField('limit-key', 'Key', { required: true, hint: 'As tasks and executions have it in concurrency' });
  const list = h('div', {}, loading());
  const chosen = (event) => {
    event.preventDefault();
    if (key.value()) page.go(['limits', key.value()]);
  };
  replace(page.root, h('form', { class: 'form', onsubmit: chosen }, key.element, h('div', { class: 'buttons' }, h('button', {}, 'Show the key'))), list);
  const draw = (data) => {
    if (refused(list, data)) return;
    const rows = data.limits.map((one) => [keyLink(one.key), String(one.taken), one.more ? `more than ${one.waiting}` : String(one.waiting)]);
    replace(list,
      rows.length === 0 && data.more
        ? h('p', {}, 'Too much waits to look at all of it, and the part that was looked at waits for no place. A key that you know is shown by its name.')
        : rows.length === 0
        ? empty('Nothing waits for a place. A task with a limit:', command(commands.scheduleLimited('emails', 'welcome', 'customer-7=5')))
        : table('Keys at which something waits', ['Key', 'Running', 'Waiting'], rows),
      h('p', { class: 'quiet' }, data.more && rows.length > 0 ? `These are not all: something may wait at other keys than ${rows.length === 1 ? 'this one' : `these ${rows.length}`}. ` : '', 'Keys with free places aren’t listed. The same in a shell: ', command(commands.listLimits())));
  };
  page.live((signal) => get(['limits'], {}, signal), draw, 5000);
}

/** How fast its work starts, if some has asked for a rate. */
const pace = (rate) => (rate === undefined ? [] : [
  ['Rate', `${rate.limit} in each ${rate.per}, ${rate.burst} at once after a quiet time`],
  ['Next start', near(rate.next_start_at)],
]);

/** A link to the task or the execution that has a place or waits for one. */
const owner = (one) => (one.task ? link(['tasks', one.task]) : link(['executions', one.execution]));

function one(page) {
  const key = page.id;
  const field = textField('limit-most', 'Limit', { required: true, hint: `1 to ${LIMIT_MAX}. It counts instead of what requests ask for. A lower one takes no place away` });
  const set = (event) => submit(event, async () => {
    try {
      await put(['limits', keyPart(key)], JSON.stringify({ limit: Number(field.value()) }));
      notify(`Set ${key}: done.`);
    } catch (error) {
      notify(refusal('Set', key, error), true);
    }
    await refresh();
  });
  const shell = h('p');
  const shellCommand = () => replace(shell, command(commands.setLimit(key, field.value() || 'LIMIT')));
  const form = h('form', { class: 'form', onsubmit: set, oninput: shellCommand }, field.element,
    h('div', { class: 'buttons' }, h('button', { disabled: settings.read_only }, 'Set the limit')), shell);
  shellCommand();
  const state = h('div', {}, loading());
  const rest = h('div');
  replace(page.root, state, section('Set its limit', form), rest);

  const draw = (data) => {
    if (refused(state, data)) return;
    const { limit } = data;
    const record = { ...limit, id: key };
    replace(state, facts([
      ['Limit', limit.limit === undefined ? 'nothing has asked for one lately' : `${limit.limit}${limit.pinned ? `, set by ${who(limit.pinned_by) ?? 'an operator'}` : ''}`],
      ['Running', String(limit.taken)],
      ['Waiting', limit.more ? `more than ${limit.waiting}` : String(limit.waiting)],
      ...pace(limit.rate),
    ]));
    replace(rest,
      limit.pinned || limit.rate ? section('Calls', panel('limit', record, refresh)) : null,
      section('Who runs', limit.holders.length === 0 ? h('p', { class: 'quiet' }, 'Nobody has a place.') : table('Who runs', ['Who', 'State', 'Its place ends', 'Call'], limit.holders.map((one) => [
        owner(one), badge(one.called ? 'called' : 'running'), one.until ? near(one.until) : 'with it', release(one),
      ]))),
      section('Who waits', limit.next.length === 0 ? h('p', { class: 'quiet' }, 'Nobody waits.') : h('ol', {}, limit.next.map((one) => h('li', {}, owner(one))))),
      section('In a shell', h('p', {}, command(commands.showLimit(key)))));
  };
  const release = (one) => {
    const holder = one.task ?? `@${one.execution}`;
    return button(RELEASE, { id: holder, key }, refresh, `limit ${key} ${holder}`);
  };
  const refresh = page.live((signal) => get(['limits', keyPart(key)], {}, signal), draw, 2000);
}

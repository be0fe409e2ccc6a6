// Limits by key: who has a key's places, who waits, and what operators change.

import { get, keyPart, put, scrape, settings } from '../api.js';
import { RELEASE, button, command, panel, refusal } from '../actions.js';
import { commands } from '../commands.js';
import { badge, empty, facts, h, link, notify, replace, section, table } from '../dom.js';
import { metrics } from '../metrics.js';
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
  const list = h('div');
  const chosen = (event) => {
    event.preventDefault();
    if (key.value()) page.go(['limits', key.value()]);
  };
  replace(page.root, h('form', { class: 'form', onsubmit: chosen }, key.element, h('div', { class: 'buttons' }, h('button', {}, 'Show the key'))), list);
  const load = async (signal) => metrics(await scrape(signal))?.limits ?? null;
  const draw = (limits) => {
    if (limits === null) {
      replace(list, h('p', { class: 'quiet' }, 'This system keeps no list of its keys, which would cost a write for each change. What waits for a place says its key.'));
    } else if (limits.length === 0) {
      replace(list, empty('Nothing has waited for a place since this server started. A task with a limit:', command(commands.scheduleLimited('emails', 'welcome', 'customer-7=5'))));
    } else {
      replace(list, table('Keys', ['Key', 'Running', 'Waiting'], limits.map(({ key: text, taken, waiting }) => [keyLink(text), String(taken), String(waiting)])));
    }
  };
  page.live(load, draw, 3000);
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
  const set = async (event) => {
    event.preventDefault();
    try {
      await put(['limits', keyPart(key)], JSON.stringify({ limit: Number(field.value()) }));
      notify(`Set ${key}: done.`);
    } catch (error) {
      notify(refusal('Set', key, error), true);
    }
    await refresh();
  };
  const shell = h('p');
  const shellCommand = () => replace(shell, command(commands.setLimit(key, field.value() || 'LIMIT')));
  const form = h('form', { class: 'form', onsubmit: set, oninput: shellCommand }, field.element,
    h('div', { class: 'buttons' }, h('button', { disabled: settings.read_only }, 'Set the limit')), shell);
  shellCommand();
  const state = h('div');
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

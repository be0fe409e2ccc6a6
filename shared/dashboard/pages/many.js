// The same call for many records: counted, confirmed, then carried out by the system.

import { because, get, parse, post, settings } from './api.js';
import { actions, command, confirmed, refusal, whyField } from './actions.js';
import { commands } from './commands.js';
import { h, notify } from './dom.js';
import { jsonField, textField } from './payload.js';

/** What an operation does with each record: as the call for one, whose texts these are. */
const OFFERED = {
  tasks: [['retry', 'Retry'], ['cancel', 'Cancel'], ['terminate', 'Cancel by force']],
  executions: [['retry_step', 'Retry the step', ' of'], ['retry', 'Rerun'], ['restart', 'Restart'], ['cancel', 'Cancel'], ['terminate', 'Terminate']],
};
const ENDED = ['retry', 'retry_step', 'restart'];

function offered(what, live, step) {
  const of = (name) => actions[what.slice(0, -1)].find((one) => one.name === name);
  const fits = ([action]) => (live === null || ENDED.includes(action) !== live) && (step || action !== 'retry_step');
  return OFFERED[what].filter(fits).map(([action, name, more = '']) => ({ action, name: `${name}${more} all`, says: `Each of them: ${of(name).says}`, final: of(name).final }));
}

/** What can be done with all of what a selection gives when it is asked: the last hour moves. `live`: whether they are open (`null`: some are); `step`: whether steps failed. */
export function many(page, what, selection, { live = null, step = true } = {}) {
  const why = whyField(`why-many-${what}`);
  const start = async (one, more, pressed) => {
    pressed.disabled = true;
    const request = { action: one.action, [what]: selection(), ...more };
    try {
      const count = await counted(request);
      const texts = [one.says, `Found now: ${count}. It can be stopped.`, one.final].filter(Boolean);
      if (count === 0) notify('Nothing matches now.');
      else if (await confirmed(one.name, `(${count})`, texts)) page.go(['operations', (await because(why.value.trim() || null, () => post(['operations'], { ...request, total: count }))).operation.id]);
    } catch (error) {
      notify(refusal(one.name, what, error), true);
    }
    pressed.disabled = settings.read_only;
  };
  const button = (one, more) => h('button', { type: 'button', disabled: settings.read_only, class: one.final ? 'danger' : '', 'data-key': one.name, onclick: (event) => start(one, more(), event.currentTarget) }, one.name);
  const row = (one) => h('li', {}, button(one, () => ({})), h('span', { class: 'says' }, one.says), command(commands.many(what, one.action, selection())));
  return [h('ul', { class: 'actions' }, offered(what, live, step).map(row)), settings.read_only ? null : why, what === 'executions' && live !== false && event(button)];
}

/** The same for all that match what a filter gives. Only what is given counts. */
export function allThatMatch(page, what, filter, live) {
  const selection = () => Object.fromEntries(Object.entries(filter()).filter(([, value]) => value?.length > 0));
  return h('details', { 'data-key': 'all' }, h('summary', {}, 'Calls on all that match'), many(page, what, selection, { live }));
}

/** An event for all. */
function event(button) {
  const name = textField('many-event', 'Event for all', { hint: 'Each takes it once' });
  const body = jsonField('many-payload', 'Its payload (JSON)', { rows: 2 });
  const one = { action: 'send_event', name: 'Send to all', says: 'Each that is open gets the event.', final: 'An event that was taken can’t be taken back.' };
  const more = () => ({ event: { name: name.value(), ...(body.value() && { payload: parse(body.value()) }) } });
  return h('div', { class: 'form' }, name.element, body.element, h('div', { class: 'buttons' }, button(one, more)));
}

/** How many records an operation would be for: a dry run of it. */
async function counted(request) {
  let { operation } = await post(['operations'], { ...request, dry_run: true });
  while (operation.status === 'running') {
    await new Promise((done) => { setTimeout(done, 300); });
    ({ operation } = await get(['operations', operation.id]));
  }
  return operation.matched;
}

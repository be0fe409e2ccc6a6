// Sends an event to an execution, and shows which events wait for it.

import { get, post, remove, settings } from '../api.js';
import { command, confirmed, refusal, submit } from '../actions.js';
import { commands } from '../commands.js';
import { badge, h, link, loading, notify, replace, section, table } from '../dom.js';
import { jsonField, payload, textField } from '../payload.js';
import { problem } from '../problem.js';
import { at, near } from '../time.js';
import { wait } from '../words.js';
import { callbackForm } from './callback.js';

/** How the names of the events begin that only callbacks send. The system refuses them from anybody else. */
const OF_CALLBACKS = 'tickover.cb.';

export function show(page) {
  const id = page.query.id ?? '';
  const choose = textField('event-execution', 'Execution', { value: id, required: true, hint: 'The id of an execution that is open' });
  const known = h('div');
  const chosen = (event) => {
    event.preventDefault();
    page.requery({ id: choose.value() });
  };
  replace(page.root, h('form', { class: 'form', onsubmit: chosen }, choose.element, h('div', { class: 'buttons' }, h('button', {}, 'Choose'))), known);
  if (!id) {
    replace(known, h('p', { class: 'quiet' }, 'Choose an execution first: the ', link(['executions'], 'list'), ' has the ids.'));
    return;
  }

  const waits = h('div', {}, loading());
  const pending = h('div');
  const callback = callbackForm(() => refresh());
  const answer = h('div');
  const name = textField('event-name', 'Event', { required: true, list: [], hint: 'The name that the workflow’s code waits for' });
  const body = jsonField('event-payload', 'Payload (JSON)', { hint: 'Without one, the event has no payload' });
  const eventId = textField('event-id', 'Id of the event (optional)', { hint: 'Of two events with one id only the first counts, so the call can be repeated' });
  const asks = h('input', { type: 'checkbox', id: 'event-answer' });
  const shell = h('p');
  const send = (event) => submit(event, async () => {
    const text = body.value();
    if (text === null || !name.value()) return;
    const fields = [text ? `"payload":${text}` : null, eventId.value() ? `"event_id":${JSON.stringify(eventId.value())}` : null].filter(Boolean);
    try {
      const sent = await post(['executions', id, 'events', name.value()], `{${fields.join(',')}}`, asks.checked ? { answer: '20s' } : {});
      if ('answer' in sent) {
        replace(answer, payload('Answer', sent.answer, 'answer'));
        await refresh();
        return;
      }
      if (sent.event_id) eventId.input.value = sent.event_id;
      replace(answer, h('p', { class: 'fine' }, sent.duplicate ? 'An event with this id was sent before; the first one counts.' : 'Sent.', ` ${sent.pending} events wait for it now. `, sent.event_id ? 'There is no answer yet: send it again to ask for it. ' : null, link(['executions', id], 'See what it does')));
    } catch (error) {
      replace(answer, problem(error));
    }
    await refresh();
  });
  const form = h('form', { class: 'form', onsubmit: send, oninput: () => shellCommand() }, name.element, body.element, eventId.element,
    h('div', { class: 'field' }, h('label', {}, asks, ' Wait for an answer, at most 20 s')),
    h('div', { class: 'buttons' }, h('button', { id: 'send-event', class: 'primary', disabled: settings.read_only }, 'Send the event')), shell, answer);
  const shellCommand = () => replace(shell, command(commands.sendEvent(id, name.value() || 'NAME', body.value(), asks.checked)));
  callback.hidden = true;
  replace(known, waits, callback, section('Send an event', form), pending);
  shellCommand();

  const load = async (signal) => {
    const [{ execution }, events] = await Promise.all([get(['executions', id], {}, signal), get(['executions', id, 'events'], {}, signal)]);
    return { execution, events };
  };

  const draw = (data) => {
    if (data.code) {
      replace(waits, problem(data));
      replace(pending);
      return;
    }
    const { execution, events } = data;
    const awaited = (execution.waits_for ?? []).filter((one) => one.event || one.kind === 'event');
    const open = awaited.filter((one) => !one.callback).map((one) => one.event);
    const names = new Set([...open, ...Object.keys(events.counts)].filter((one) => one && !one.startsWith(OF_CALLBACKS)));
    name.element.querySelector('datalist').replaceChildren(...[...names].map((one) => h('option', { value: one })));
    const choice = (one) => h('button', { type: 'button', class: 'linkish', 'data-key': `wait ${one.event}`, onclick: () => { name.input.value = one.event; shellCommand(); } }, wait(one));
    callback.hidden = !awaited.some((one) => one.callback);
    replace(waits, h('p', {}, link(['executions', id]), ' of ', execution.workflow, ' ', badge(execution.status)),
      execution.ended_at ? h('p', { class: 'problem' }, 'It has ended: it takes no more events.') : null,
      awaited.length > 0 ? h('div', {}, h('p', {}, 'It waits for:'), h('ul', {}, awaited.map((one) => h('li', {}, one.event && !one.callback ? choice(one) : wait(one), one.until ? [', ', near(one.until)] : null)))) : null,
      h('p', { class: 'quiet' }, 'An event that the code doesn’t wait for yet is kept until it does.'));
    replace(pending, section('Events that wait for it', events.events.length === 0 ? h('p', { class: 'quiet' }, 'None.') : [
      table('Events that wait for it', ['Name', 'Id', 'Sent', 'Payload'], events.events.map((event) => [event.name, event.event_id ?? '', at(event.sent_at), payload('Payload', event.payload, event.name, false) ?? ''])),
      h('ul', { class: 'actions' }, Object.entries(events.counts).map(([one, count]) => h('li', {},
        h('button', { type: 'button', class: 'danger', disabled: settings.read_only, 'data-key': `clear ${one}`, onclick: () => clear(one, count) }, `Clear ${one}`),
        h('span', { class: 'says' }, `All ${count} events of this name are removed. The workflow doesn’t get them.`), command(commands.clearEvents(id, one))))),
    ]));
  };

  async function clear(one, count) {
    if (!(await confirmed('Clear', one, [`${count} events of this name are removed. The workflow doesn’t get them.`], commands.clearEvents(id, one)))) return;
    try {
      const { cleared } = await remove(['executions', id, 'events', one]);
      notify(`${cleared} events of ${one} are removed.`);
    } catch (error) {
      notify(refusal('Clear', one, error), true);
    }
    await refresh();
  }

  const refresh = page.live(load, draw, 3000);
}

// Ends a wait for a callback, with the token that the workflow's code has given away.

import { post, settings } from '../api.js';
import { command, submit } from '../actions.js';
import { commands } from '../commands.js';
import { h, replace, section } from '../dom.js';
import { jsonField, textField } from '../payload.js';
import { problem } from '../problem.js';

/** The form. `done` is called after each report. */
export function callbackForm(done) {
  const address = textField('callback-token', 'Its token, or the address that ends with it', { required: true, hint: 'Only the token ends the wait. Nothing keeps it but whom the code gave it' });
  const output = jsonField('callback-output', 'Result (JSON)', { rows: 3, hint: 'Without one, the result is null' });
  const code = textField('callback-code', 'Or an error’s code', { hint: 'With one, the wait ends with this error' });
  const answer = h('div');
  const shell = h('p');
  const token = () => address.value().split('/').at(-1);
  const shellCommand = () => replace(shell, command(code.value() ? commands.failCallback(token() || 'TOKEN', code.value()) : commands.completeCallback(token() || 'TOKEN', output.value())));
  const report = (event) => submit(event, async () => {
    const text = output.value();
    if (text === null) return;
    const [how, body] = code.value() ? ['fail', { error: { code: code.value() } }] : ['complete', text ? `{"output":${text}}` : {}];
    try {
      await post(['callbacks', token(), how], body);
      replace(answer, h('p', { class: 'fine' }, 'Reported.'));
    } catch (error) {
      replace(answer, problem(error));
    }
    await done();
  });
  shellCommand();
  return section('Report to a callback', h('form', { class: 'form', onsubmit: report, oninput: shellCommand }, address.element, output.element, code.element,
    h('div', { class: 'buttons' }, h('button', { id: 'report-callback', disabled: settings.read_only }, 'Report')), shell, answer));
}

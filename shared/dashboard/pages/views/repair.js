// Runs an execution that has ended again: its failed step with another input, or all from a step on, or with another input.

import { because, get, post, settings } from '../api.js';
import { command, confirmed, refusal, submit, whyField } from '../actions.js';
import { commands } from '../commands.js';
import { address, h, notify, replace } from '../dom.js';
import { choice } from '../lists.js';
import { jsonField } from '../payload.js';

/** The first choice: what a rerun does without a step. */
const FAILED = '';
const ALL = '*';

/** The steps and children of a run in the order in which they began. */
function begun(entries) {
  const names = entries.filter((entry) => /^(step|child)_/.test(entry.kind) && entry.name).map((entry) => entry.name);
  return [...new Set(names)];
}

/** The form for a new run of an execution, with the input of the last one. `done` is called after it has started. */
export function repair(execution, entries, done) {
  const { id, input } = execution;
  const was = input === undefined ? '' : JSON.stringify(input, null, 2);
  const field = jsonField('repair-input', 'Input (JSON)', { value: was, hint: 'Without one, the input stays' });
  const why = whyField('repair-why');
  const shell = h('p');
  let from = FAILED;
  const request = () => {
    const text = field.value();
    if (text === null) return null;
    const changed = text && text !== was ? text : null;
    const parts = [changed && `"input":${changed}`, from === ALL ? '"preserve":false' : from && `"from":${JSON.stringify(from)}`];
    return { body: `{${parts.filter(Boolean).join(',')}}`, args: commands.rerunFrom(id, { from: from === ALL ? null : from, discard: from === ALL, input: changed }) };
  };
  const draw = () => {
    const asked = request();
    replace(shell, asked && command(asked.args));
  };
  const run = async (event) => {
    event.preventDefault();
    const asked = request();
    if (!asked || !(await confirmed('Run again', id, ['A new run begins with the results of the steps that don’t run again.', 'Work of steps that run again is done again unless they are idempotent.'], asked.args))) return;
    await submit(event, async () => {
      try {
        const { execution: after } = await because(why.value.trim() || null, () => post(['executions', id, 'rerun'], asked.body));
        notify(`${id}: run ${after.run} begins.`);
      } catch (error) {
        notify(refusal('Run again', id, error), true);
      }
      await done();
    });
  };
  const options = [[FAILED, 'only what failed'], [ALL, 'all steps'], ...begun(entries).map((name) => [name, `${name} and all after it`])];
  const form = h('form', { class: 'form', onsubmit: run, oninput: draw },
    choice('repair-from', 'What runs again', options, from, (value) => { from = value; draw(); }), field.element, why,
    h('div', { class: 'buttons' }, h('button', { id: 'repair-run', class: 'danger', disabled: settings.read_only }, 'Run again'),
      h('a', { href: address(['start'], { like: id }) }, 'Start another execution with this input')), shell);
  draw();
  return h('details', { 'data-key': 'repair' }, h('summary', {}, 'Run again from a step, or with another input'), form);
}

/** The form for the step because of which an execution failed, if it is a remote one: any other takes its input from the code. */
export function retryStep({ id, status, cause }, entries, done) {
  const step = status === 'failed' ? cause?.step : null;
  const task = step && entries.findLast((entry) => entry.name === step && entry.task)?.task;
  if (!task) return null;
  const field = jsonField('step-input', 'Input of the step (JSON)', { hint: 'Without one, the input stays' });
  const why = whyField('step-why');
  const shell = h('p');
  const draw = () => {
    const input = field.value();
    replace(shell, input !== null && command(commands.retryStep(id, step, input)));
  };
  const fill = async (event) => {
    if (!event.target.open || field.area.value) return;
    const known = await get(['tasks', task]).catch(() => null);
    if (known?.task.input === undefined || field.area.value) return;
    field.area.value = JSON.stringify(known.task.input, null, 2);
    draw();
  };
  const run = (event) => submit(event, async () => {
    const input = field.value();
    if (input === null) return;
    try {
      await because(why.value.trim() || null, () => post(['executions', id, 'steps', step, 'retry'], input ? `{"input":${input}}` : '{}'));
      notify(`${id}: the step ${step} runs again.`);
    } catch (error) {
      notify(refusal('Retry the step', id, error), true);
    }
    await done();
  });
  const form = h('form', { class: 'form', onsubmit: run, oninput: draw }, field.element, why,
    h('div', { class: 'buttons' }, h('button', { id: 'step-run', disabled: settings.read_only }, 'Run the step with this input')), shell);
  draw();
  return h('details', { 'data-key': 'retry-step', ontoggle: fill }, h('summary', {}, `Run the step ${step} again with another input`), form);
}

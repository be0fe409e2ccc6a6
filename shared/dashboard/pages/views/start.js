// Starts an execution or schedules a task.

import { get, post, settings } from '../api.js';
import { command, submit } from '../actions.js';
import { commands } from '../commands.js';
import { h, link, loading, replace, section } from '../dom.js';
import { remember, workflows } from '../known.js';
import { jsonField, textField } from '../payload.js';
import { problem } from '../problem.js';

export async function show(page) {
  const form = h('div', {}, loading());
  const tab = (key, text) => h('button', { type: 'button', id: `tab-${key}`, 'aria-pressed': String(what === key), onclick: () => page.requery({ what: key }) }, text);
  const what = page.query.what === 'task' ? 'task' : 'execution';
  replace(page.root, h('div', { class: 'buttons', role: 'group', 'aria-label': 'What to start' }, tab('execution', 'An execution of a workflow'), tab('task', 'A task for a worker')), form);
  let names = [];
  let like = {};
  let queues = [];
  try {
    queues = (await get(['queues'], {}, page.signal)).queues;
    names = await workflows(page.signal, queues);
    if (page.query.like) like = (await get(['executions', page.query.like], {}, page.signal)).execution;
  } catch (error) {
    if (page.signal.aborted) return;
    replace(form, problem(error));
    return;
  }
  replace(form, what === 'task' ? task(queues.map((queue) => queue.name)) : execution(names, queues.map((queue) => queue.name), like));
}

/** The form for an execution, with what another one has. */
function execution(names, queues, like) {
  const text = (value) => (value === undefined ? '' : JSON.stringify(value, null, 2));
  const fields = {
    workflow: textField('start-workflow', 'Workflow', { value: like.workflow, required: true, list: names, hint: 'The name under which its workers serve it' }),
    id: textField('start-id', 'Id (optional)', { hint: 'A name of yours, such as order-7: starting it again then changes nothing. Random by default' }),
    queue: textField('start-queue', 'Queue (optional)', { value: like.queue, list: queues, hint: 'By default the queue whose workers have announced the workflow' }),
    execution_timeout: textField('start-timeout', 'Time limit of all its runs (optional)', { value: like.execution_timeout, hint: 'Such as 30m or 7d' }),
    delay: textField('start-delay', 'Delay (optional)', { hint: 'Such as 10m' }),
  };
  const input = jsonField('start-input', 'Input (JSON)', { value: text(like.input), hint: 'Without one, the input is null' });
  const labels = jsonField('start-labels', 'Labels (JSON object of texts, optional)', { value: text(like.labels), rows: 2 });
  return filled('Start an execution', 'Start the execution', [fields.workflow, input, fields.id, fields.queue, fields.execution_timeout, fields.delay, labels], {
    request: () => body(fields, { input, labels }),
    send: async (request) => {
      const answer = await post(['executions'], request);
      remember(answer.execution.workflow);
      return ['executions', answer.execution.id];
    },
    command: () => commands.start(fields.workflow.value() || 'WORKFLOW', { id: fields.id.value(), queue: fields.queue.value(), input: input.value() }),
  });
}

function task(queues) {
  const fields = {
    queue: textField('task-queue', 'Queue', { required: true, list: queues, hint: 'The queue of its workers' }),
    kind: textField('task-kind', 'Kind', { required: true, hint: 'What kind of work it is, such as welcome' }),
    id: textField('task-id', 'Id (optional)', { hint: 'A name of yours: scheduling it again then changes nothing. Random by default' }),
    timeout: textField('task-timeout', 'Deadline over all attempts (optional)', { hint: 'Such as 10m, from now' }),
    retry: textField('task-retry', 'Retries (optional)', { hint: 'Such as exponential(3, 2s)' }),
    delay: textField('task-delay', 'Delay (optional)', { hint: 'Such as 10m' }),
  };
  const input = jsonField('task-input', 'Input (JSON)', { hint: 'Without one, it has no input' });
  const labels = jsonField('task-labels', 'Labels (JSON object of texts, optional)', { rows: 2 });
  return filled('Schedule a task', 'Schedule the task', [fields.queue, fields.kind, input, fields.id, fields.timeout, fields.retry, fields.delay, labels], {
    request: () => body(fields, { input, labels }),
    send: async (request) => ['tasks', (await post(['tasks'], request)).task.id],
    command: () => commands.schedule(fields.queue.value() || 'QUEUE', fields.kind.value() || 'KIND', { id: fields.id.value(), input: input.value(), timeout: fields.timeout.value(), retry: fields.retry.value() }),
  });
}

/** The request as JSON. The payloads stay as they were typed. `null` if one of them isn't JSON. */
function body(fields, payloads) {
  const parts = Object.entries(fields).filter(([, field]) => field.value()).map(([name, field]) => `${JSON.stringify(name)}:${JSON.stringify(field.value())}`);
  for (const [name, field] of Object.entries(payloads)) {
    const text = field.value();
    if (text === null) return null;
    if (text) parts.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${parts.join(',')}}`;
}

/** A form with its command, which sends its request. */
function filled(title, verb, fields, { request, send, command: shell }) {
  const answer = h('div');
  const shown = h('p');
  const draw = () => replace(shown, command(shell()));
  const submitted = (event) => submit(event, async () => {
    const text = request();
    if (text === null) return;
    try {
      const path = await send(text);
      replace(answer, h('p', { class: 'fine', role: 'status' }, 'It is stored as ', link(path), '.'));
    } catch (error) {
      replace(answer, problem(error));
    }
  });
  const form = h('form', { class: 'form', onsubmit: submitted, oninput: draw }, fields.map((field) => field.element),
    h('div', { class: 'buttons' }, h('button', { class: 'primary', id: 'submit', disabled: settings.read_only }, verb)), shown, answer);
  draw();
  return section(title, form);
}

// One task.

import { Problem, get } from '../api.js';
import { command, panel } from '../actions.js';
import { commands } from '../commands.js';
import { badge, facts, h, link, replace, section, trace } from '../dom.js';
import { failure, payload } from '../payload.js';
import { outdated, refused } from '../problem.js';
import { both, length, millis } from '../time.js';
import { attempts } from '../timeline/details.js';
import { next, reason, retries, timeouts, who } from '../words.js';
import { deadline, labels } from './execution.js';
import { keyLink } from './limits.js';

export function show(page) {
  const { root, id } = page;
  const gone = h('div');
  let isKnown = false;

  const draw = (data) => {
    if (data instanceof Problem && isKnown) {
      replace(gone, outdated(data));
      return;
    }
    gone.replaceChildren();
    if (refused(root, data, h('p', {}, 'It may have been deleted after its retention, or it is the id of an execution: ', link(['executions', id], `look for the execution ${id}`)))) return;
    isKnown = true;
    const { task } = data;
    replace(root, gone, state(task),
      section('What happens next', h('p', { class: 'next' }, next(task), task.waits_at ? [' ', keyLink(task.waits_at.limit.key, 'Who has the places')] : null)),
      section('Calls', panel('task', task, refresh)),
      section('Attempts', attempts(task)),
      section('Input and output', payload('Input', task.input, id), payload('Output', task.output, id), task.input === undefined && task.output === undefined ? h('p', { class: 'quiet' }, 'It has none.') : null),
      section('In a shell', h('p', {}, command(commands.explain(id))), h('p', {}, command(commands.describe(id)))));
  };

  const refresh = page.live((signal) => get(['tasks', id], {}, signal), draw, 2000);
}

function state(task) {
  const most = task.max_attempts === -1 ? 'any number' : task.max_attempts;
  const isLive = !task.ended_at;
  return h('div', { class: 'state' },
    h('p', {}, badge(task.status), ' ', reason(task)),
    task.error ? failure(task.error) : null,
    facts([
      ['Kind', task.kind],
      ['Queue', h('a', { href: `#/tasks?queue=${encodeURIComponent(task.queue)}` }, task.queue)],
      ['Execution', task.execution_id ? link(['executions', task.execution_id]) : null],
      ['Step', task.step],
      ['Attempt', `${task.attempt} of ${most}`],
      ['Retries', retries(task)],
      ['Progress', task.progress === undefined ? null : h('span', {}, h('progress', { value: task.progress, 'aria-label': 'Progress' }), ` ${Math.round(task.progress * 100)} %`)],
      ['Details', task.details === undefined ? null : h('code', {}, JSON.stringify(task.details))],
      ['Scheduled', both(task.created_at)],
      ['Available', isLive ? both(task.available_at) : null],
      ['Ended', both(task.ended_at)],
      ['Operated by', who(task.by)],
      ['Took', task.ended_at ? length(millis(task.ended_at) - millis(task.created_at)) : null],
      ['Deadline', isLive ? deadline(task.deadline_at) : both(task.deadline_at)],
      ['A worker must claim it by', deadline(task.schedule_to_start_at)],
      ['This attempt must end by', deadline(task.start_to_close_at)],
      ['Next heartbeat by', deadline(task.heartbeat_at)],
      ...timeouts(task),
      ['Lease until', isLive ? both(task.lease_expires_at) : null],
      ['Priority', task.priority],
      ['Fairness key', task.fairness_key],
      ['Labels', labels(task.labels)],
      ['Trace', trace(task)],
    ]));
}

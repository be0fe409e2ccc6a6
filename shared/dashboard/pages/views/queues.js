// All queues: their depth, and pausing them.

import { get } from '../api.js';
import { command, panel } from '../actions.js';
import { commands } from '../commands.js';
import { address, badge, empty, facts, h, link, replace, section } from '../dom.js';
import { day, history } from '../history.js';
import { refused } from '../problem.js';
import { both } from '../time.js';
import { who } from '../words.js';

/** Of how many queues with work that waits the oldest task is asked for, by a call each. */
const ASKED = 50;

export function show(page) {
  const load = async (signal) => {
    const charted = page.query.day;
    const [{ queues }, lastDay] = await Promise.all([get(['queues'], {}, signal), charted ? history(charted, signal) : null]);
    const waiting = queues.filter(({ depth }) => depth > 0).slice(0, ASKED);
    const asked = await Promise.all(waiting.map(({ name }) => get(['queues', name], {}, signal)));
    const known = new Map(asked.map(({ queue }) => [queue.name, queue]));
    return { lastDay, queues: queues.map((queue) => known.get(queue.name) ?? queue) };
  };

  const draw = (data) => {
    if (refused(page.root, data)) return;
    if (data.queues.length === 0) {
      replace(page.root, empty('There is no queue yet. A queue exists after its first task or execution:'), command(commands.schedule('emails', 'welcome', {})));
      return;
    }
    replace(page.root, page.query.day ? day(data.lastDay, page.query.day) : null, data.queues.map(one), h('p', { class: 'quiet' }, 'The numbers count messages, and are approximate. The same in a shell: ', command(commands.listQueues())));
  };

  function one(queue) {
    return section(queue.name,
      queue.paused ? h('p', {}, badge('paused'), ` Its tasks aren’t given to workers.${queue.by ? ` Paused by ${who(queue.by)}.` : ''}`) : null,
      facts([
        ['Waiting for a worker', counted(queue, queue.depth, 'pending')],
        ['With workers', counted(queue, queue.in_flight, 'running')],
        ['Starting within 15 minutes', String(queue.delayed)],
        ['Oldest waits since', both(queue.oldest_at)],
        ['Workflows of its workers', queue.workflows?.length ? queue.workflows.map((name) => [link(['executions'], name, { href: `#/executions?workflow=${encodeURIComponent(name)}` }), ' ']) : null],
      ]),
      h('p', {}, h('a', { href: address(['queues'], { day: queue.name }), 'data-key': `day ${queue.name}` }, 'The last day'), ', ', link(['workers'], 'its workers')),
      panel('queue', queue, refresh));
  }

  const refresh = page.live(load, draw, 3000);
}

/** How many tasks and turns there are, with a link to the tasks among them. */
const counted = ({ name }, count, status) => [`${count}, `, h('a', { href: address(['tasks'], { queue: name, status }) }, 'its tasks')];

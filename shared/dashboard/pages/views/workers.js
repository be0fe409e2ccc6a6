// Which workers each queue has, and which queue has none.

import { get } from '../api.js';
import { command } from '../actions.js';
import { commands } from '../commands.js';
import { address, badge, empty, h, link, replace, section, table } from '../dom.js';
import { refused } from '../problem.js';
import { near } from '../time.js';

/** Whether a queue has work and nobody who takes it, in words. */
export function unserved(queue) {
  return h('span', { class: 'badge failed' }, queue.workers?.length > 0 ? 'its workers are gone' : 'no workers');
}

export function show(page) {
  const draw = (data) => {
    if (refused(page.root, data)) return;
    const { queues } = data;
    if (queues.length === 0) {
      return replace(page.root, empty('There is no queue yet, so no worker has asked for work.', h('p', {}, 'In a shell, one begins with ', h('code', {}, 'tickover work'), '.')));
    }
    const sorted = [...queues].sort((one, other) => Number(other.unserved) - Number(one.unserved));
    replace(page.root, sorted.map(one), h('p', { class: 'quiet' }, 'A worker is known by the calls in which it asks for work, and named for a day. A function that AWS starts for messages is seen while there are some. The same in a shell: ', command(commands.listWorkers())));
  };

  page.live((signal) => get(['workers'], {}, signal), draw, 5000);
}

function one(queue) {
  const waiting = [`${queue.depth} wait (`, h('a', { href: address(['tasks'], { queue: queue.queue, status: 'pending' }) }, 'its tasks'), ')'];
  const says = queue.unserved ? [unserved(queue), ' Work waits, and no worker has asked for it in the last 3 minutes. '] : queue.paused ? [badge('paused'), ' '] : null;
  const rows = queue.workers.map((worker) => [
    worker.name, worker.version ?? '', worker.there ? 'there' : badge('gone'), near(worker.since), near(worker.seen_at),
  ]);
  const flows = queue.workflows?.map((name) => [' ', h('a', { href: address(['executions'], { workflow: name }) }, name)]);
  return section(queue.queue, h('p', {}, says, waiting, `, workers have ${queue.in_flight}. `, flows ? ['Workflows of its workers:', flows] : null),
    rows.length > 0 ? table(`Workers of ${queue.queue}`, ['Worker', 'Version', 'State', 'Since', 'Last seen'], rows) : h('p', { class: 'quiet' }, 'No worker has asked for its work within a day.'));
}

/** The queues without workers, for the overview. */
export function alarm(queues) {
  const missing = queues.filter((queue) => queue.unserved);
  if (missing.length === 0) return null;
  const names = missing.slice(0, 5).map((queue, place) => [place > 0 ? ', ' : '', link(['workers'], queue.name)]);
  return h('p', { class: 'problem' }, h('strong', {}, missing.length === 1 ? 'No workers: ' : `${missing.length} queues without workers: `), names, missing.length > 5 ? ' and more' : '', '. Their work waits.');
}

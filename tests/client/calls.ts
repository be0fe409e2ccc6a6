// Ten calls of a client that is generated from the OpenAPI document, against a real server: `node dist/calls.js ENDPOINT`.
// The compiler checks the requests and the answers against the document.

import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { paths } from './api.js';

const endpoint = process.argv[2];
assert(endpoint, 'usage: calls.js ENDPOINT');
const client = createClient<paths>({ baseUrl: endpoint });

/** The answer of a call that must succeed. */
function ok<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  assert(response.ok && data !== undefined, `${response.status} ${response.url}: ${JSON.stringify(error)}`);
  return data;
}

const scheduled = ok(await client.POST('/v1/tasks', {
  body: {
    queue: 'generated', kind: 'greet', id: 'hello-1', input: { to: 'Ada' }, labels: { team: 'core' }, timeout: '10m',
    retry: { max_attempts: 3, delay: ['1s', 2000] }, concurrency: [{ key: 'customer/7', limit: 2 }],
  },
}));
assert.equal(scheduled.task.status, 'pending');

const claim = ok(await client.POST('/v1/queues/{queue}/claim', {
  params: { path: { queue: 'generated' } }, body: { max: 1, worker: 'generated-1', lease: '30s', wait: '1s' },
}));
const claimed = claim.tasks[0];
assert(claimed, 'a task');
assert.deepEqual([claimed.id, claimed.input], ['hello-1', { to: 'Ada' }]);

const beat = ok(await client.POST('/v1/tasks/{id}/heartbeat', {
  params: { path: { id: claimed.id } }, body: { lease: claimed.lease, progress: 0.5 },
}));
assert.equal(beat.cancel_requested, false);

const limit = ok(await client.PUT('/v1/limits/{key}', { params: { path: { key: 'customer~2F7' } }, body: { limit: 3 } }));
assert.deepEqual([limit.limit.key, limit.limit.taken], ['customer/7', 1]);

const completed = ok(await client.POST('/v1/tasks/{id}/complete', {
  params: { path: { id: claimed.id } }, body: { lease: claimed.lease, output: ['hello', null] },
}));
assert.equal(completed.task.status, 'completed');

const described = ok(await client.GET('/v1/tasks/{id}', { params: { path: { id: claimed.id } } }));
assert.deepEqual(described.task.output, ['hello', null]);

const listed = ok(await client.GET('/v1/tasks', { params: { query: { queue: 'generated', label: 'team=core', limit: 10 } } }));
assert.deepEqual(listed.tasks.map((task) => task.id), ['hello-1']);

const cron = ok(await client.POST('/v1/crons', {
  body: { id: 'nightly', cron: '30 2,14 * * *', time_zone: 'Europe/Berlin', task: { queue: 'generated', kind: 'greet' } },
}));
assert.equal(cron.cron.time_zone, 'Europe/Berlin');

const started = ok(await client.POST('/v1/executions', { body: { workflow: 'order', id: 'order-7', queue: 'generated', input: null } }));
assert.equal(started.execution.status, 'pending');

const absent = await client.GET('/v1/executions/{id}', { params: { path: { id: 'order-8' } } });
assert.equal(absent.error?.code, 'not_found');
console.log('ten calls');

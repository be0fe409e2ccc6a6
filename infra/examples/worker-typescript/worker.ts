/** A worker of a queue. After SIGTERM or SIGINT, it finishes its task and ends. */
import { Sha256 } from "@aws-crypto/sha256-js";
import { fromNodeProviderChain } from "@aws-sdk/credential-providers";
import { SignatureV4 } from "@smithy/signature-v4";
import { setTimeout as sleep } from "node:timers/promises";

export type Task = { id: string; kind: string; attempt: number; lease: string; input: any } & Values;
/** How far an attempt is. The progress is from 0 to 1, the details are any JSON of up to 512 bytes. */
export type Values = { progress?: number; details?: any };
/** By kind. A handler gets a task, and a signal that is aborted when it should stop. */
export type Handlers = Record<string, (task: Task, stop: AbortSignal) => Promise<unknown>>;
type Answer = { tasks?: Task[]; cancel_requested?: boolean; detail?: string };

const api = (process.env.TICKOVER_ENDPOINT ?? "http://127.0.0.1:7070").replace(/\/$/, "") + "/v1/";
const [, service, region] = /\.(execute-api|lambda)(?:-url)?\.([a-z0-9-]+)\./.exec(api) ?? [];
const credentials = fromNodeProviderChain();
const signer = service && region && new SignatureV4({ service, region, credentials, sha256: Sha256 });
const failure = (code: string, message = "", retryable = true) => ({ error: { code, message, retryable } });

/** The answer's status and content. Without an answer: 503 and the reason. */
async function call(path: string, content: object): Promise<[number, Answer]> {
  const { href, protocol, host, hostname, pathname } = new URL(api + path);
  const body = JSON.stringify(content);
  const plain = { host, "content-type": "application/json" };
  const request = { method: "POST", protocol, hostname, path: pathname, headers: plain, body };
  try {
    const { headers } = signer ? await signer.sign(request) : request;
    const answer = await fetch(href, { method: "POST", headers, body, signal: AbortSignal.timeout(30_000) });
    return [answer.status, (await answer.json()) as Answer];
  } catch (error) {
    return [503, { detail: String((error as Error).cause ?? error) }];
  }
}

/** Whether the handler may continue: not if the lease is lost or a cancellation is requested. */
async function report(task: Task, what: string, more: object = {}): Promise<boolean> {
  for (let tries = 0; tries < 30; tries++) {
    const [status, answer] = await call(`tasks/${task.id}/${what}`, { lease: task.lease, ...more });
    console.log(what, task.id, status, answer.detail ?? "");
    if (what === "complete" && [400, 413].includes(status)) // No repetition helps: it is too large, or no JSON.
      return report(task, "fail", failure(status === 413 ? "output_too_large" : "output_refused", answer.detail));
    if (status < 500 && status !== 429) return status === 200 && !answer.cancel_requested;
    await sleep(1000);
  }
  return true;
}

/** A handler's sign of life, for its heartbeat timeout. Its next attempt gets the values. Whether it may continue. */
export const alive = (task: Task, values: Values = {}) => report(task, "heartbeat", values);

async function outcome(task: Task, handlers: Handlers, stop: AbortSignal): Promise<[string, object]> {
  try {
    const output = await handlers[task.kind]!(task, stop);
    JSON.stringify(output); // What isn't JSON fails the attempt.
    return ["complete", { output }];
  } catch (caught) {
    const { code, name, message, retryable } = caught as Error & { code?: string; retryable?: boolean };
    return ["fail", failure(String(code ?? name), message, retryable)];
  }
}

async function run(task: Task, handlers: Handlers, leaseSeconds: number): Promise<void> {
  const stop = new AbortController();
  const beats = setInterval(async () => {
    // It says nothing about the handler, which may hang.
    if (!stop.signal.aborted && !(await report(task, "heartbeat", { worker_only: true }))) stop.abort();
  }, leaseSeconds * 333);
  const [what, result] = await outcome(task, handlers, stop.signal);
  clearInterval(beats);
  await (stop.signal.aborted ? report(task, "release") : report(task, what, result)); // A release ends a cancelled task.
}

export async function work(queue: string, handlers: Handlers, leaseSeconds = 60): Promise<void> {
  let stopping = false;
  for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => (stopping = true));
  const claim = { worker: `node-${process.pid}`, wait: "5s", lease: `${leaseSeconds}s` };
  while (!stopping) {
    const [status, answer] = await call(`queues/${queue}/claim`, claim);
    const next = (task: Task) => (stopping ? report(task, "release") : run(task, handlers, leaseSeconds));
    for (const task of answer.tasks ?? []) await next(task);
    if (status !== 200) console.log("claim", queue, status, answer.detail ?? "");
    if (status === 404 || status === 429 || status >= 500) await sleep(1000); // 404: before the queue's first task.
    else if (status !== 200) throw new Error(`claim ${queue} ${status} ${JSON.stringify(answer)}`);
  }
}

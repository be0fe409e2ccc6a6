/** A worker of a queue. After SIGTERM or SIGINT, it finishes its task and ends. */
import { Sha256 } from "@aws-crypto/sha256-js";
import { fromNodeProviderChain } from "@aws-sdk/credential-providers";
import { SignatureV4 } from "@smithy/signature-v4";
import { exec } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

export type Task = { id: string; kind: string; attempt: number; lease: string; input: any } & Values;
/** How far an attempt is. The progress is from 0 to 1, the details are any JSON of up to 512 bytes. */
export type Values = { progress?: number; details?: any };
/** By kind. A handler gets a task, and a signal that is aborted when it should stop. */
export type Handlers = Record<string, (task: Task, stop: AbortSignal) => Promise<unknown>>;
type Answer = { tasks?: Task[]; cancel_requested?: boolean; detail?: string };

const api = (process.env.TICKOVER_ENDPOINT ?? "http://127.0.0.1:7070").replace(/\/$/, "") + "/v1/";
const { TICKOVER_REGION: given, TICKOVER_TOKEN_COMMAND: tokenCommand } = process.env;
const onAws = /\.(execute-api|lambda)(?:-url)?\.([a-z0-9-]+)\./.exec(api) ?? [];
const [, service, region] = given ? ["", "execute-api", given] : onAws;
const credentials = fromNodeProviderChain();
const signer = service && region && new SignatureV4({ service, region, credentials, sha256: Sha256 });
// No repetition helps a report that is refused for its content. This code is reported instead.
const refused: Record<string, string> = {
  "complete 413": "output_too_large",
  "complete 400": "output_refused",
  "fail 413": "error_refused",
  "fail 400": "error_refused",
};
type Failure = { error: { code: string; message: string; retryable: boolean } };
type Report = Partial<Failure> & Record<string, unknown>;

let token = "";

async function send(path: string, content: object): Promise<[number, Answer]> {
  const { href, protocol, host, hostname, pathname } = new URL(api + path);
  const body = JSON.stringify(content);
  const plain: Record<string, string> = { host, "content-type": "application/json" };
  const request = { method: "POST", protocol, hostname, path: pathname, headers: plain, body };
  if (tokenCommand) {
    token ||= (await promisify(exec)(tokenCommand)).stdout.trim();
    plain.authorization = `Bearer ${token}`;
  }
  const { headers } = signer && !tokenCommand ? await signer.sign(request) : request;
  const answer = await fetch(href, { method: "POST", headers, body, signal: AbortSignal.timeout(30_000) });
  return [answer.status, (await answer.json()) as Answer];
}

/** The answer's status and content. Without an answer: 503 and the reason. */
async function call(path: string, content: object): Promise<[number, Answer]> {
  try {
    const answer = await send(path, content);
    if (answer[0] !== 401 || !tokenCommand) return answer;
    token = ""; // It has expired. Another one is tried once.
    return await send(path, content);
  } catch (error) {
    return [503, { detail: String((error as Error).cause ?? error) }];
  }
}

/** A text that the API takes: not too long, and without halves of characters. */
const text = (value: unknown) => Buffer.from(String(value).slice(0, 100_000)).toString();

/** What a thrown value says about itself, if it can be used: its properties may fail. */
function told<T>(read: () => T, isUsable: (value: T) => boolean, other: T): T {
  try {
    const value = read();
    return isUsable(value) ? value : other;
  } catch {
    return other;
  }
}

/** Anything can be thrown: `null`, a text, an error of a library. */
function failure(thrown: any): Failure {
  const isText = (value: unknown) => typeof value === "string";
  const isCode = (value: unknown) => (isText(value) || typeof value === "number") && /^.{1,64}$/s.test(text(value));
  const code = told(() => thrown.code, isCode, told(() => thrown.name, isCode, "Error"));
  const message = told(() => thrown.message, isText, told(() => text(thrown), isText, ""));
  const retryable = told(() => thrown.retryable, (value) => typeof value === "boolean", true);
  return { error: { code: text(code), message: text(message), retryable } };
}

/** Whether the handler may continue: not if the lease is lost or a cancellation is requested. */
async function report(task: Task, what: string, more: Report = {}): Promise<boolean> {
  for (let tries = 0; tries < 30; tries++) {
    const [status, answer] = await call(`tasks/${task.id}/${what}`, { lease: task.lease, ...more });
    console.log(what, task.id, status, answer.detail ?? "");
    const code = refused[`${what} ${status}`];
    if (code && code !== more.error?.code) {
      const error = { code, message: text(answer.detail ?? ""), retryable: more.error?.retryable ?? true };
      return report(task, "fail", { error });
    }
    if (status < 500 && status !== 429) return status === 200 && !answer.cancel_requested;
    await sleep(1000);
  }
  return true;
}

/** A handler's sign of life, for its heartbeat timeout. Its next attempt gets the values. Whether it may continue. */
export const alive = (task: Task, values: Values = {}) => report(task, "heartbeat", values);

async function outcome(task: Task, handlers: Handlers, stop: AbortSignal): Promise<[string, Report]> {
  try {
    const output = JSON.stringify(await handlers[task.kind]!(task, stop)); // What isn't JSON fails the attempt.
    return ["complete", output === undefined ? {} : { output: JSON.parse(output) }];
  } catch (thrown) {
    return ["fail", failure(thrown)];
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

// The tests' handlers, run by the example worker: node handlers.mjs QUEUE LEASE_SECONDS

import dns from "node:dns";
import { existsSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const { DIR, WORKER } = process.env;
const { alive, work } = await import(WORKER);
// A test's server has the name of an API on AWS. Every name is this machine's here.
const lookUp = dns.lookup;
dns.lookup = (host, ...more) => lookUp("127.0.0.1", ...more);

const odd = {
  exit: "gone ".repeat(100),
  method: Object.assign(new Error("odd"), { code: () => 7 }),
  half: Object.assign(new Error("a\ud800b"), { code: "half\ud800" }),
  empty: Object.assign(new Error("odd"), { code: "" }),
  flag: Object.assign(new Error("odd"), { code: "no_flag", retryable: "no" }),
  mute: new Proxy({}, { get: () => { throw new Error("no property"); } }),
  huge: Object.assign(new Error("x".repeat(10_000_000)), { code: "c".repeat(65) }),
  null: null,
};
const throwing = (name) => async () => {
  throw odd[name];
};
const handlers = {
  ...Object.fromEntries(Object.keys(odd).map((name) => [`odd-${name}`, throwing(name)])),
  flaky: async (task) => {
    if (task.attempt === 1) throw Object.assign(new Error("not today"), { code: "card_declined" });
    return "paid";
  },
  // As many bytes as the input says in the first attempt, and a small output in the next one.
  large: async (task) => (task.attempt === 1 ? "x".repeat(task.input.bytes) : "small"),
  final: async () => {
    throw Object.assign(new Error("never"), { code: "no_such_card", retryable: false });
  },
  "until-go": async () => {
    while (!existsSync(`${DIR}/go`)) await sleep(20);
    return "done";
  },
  // Says how far it is and hangs in the first attempt. Returns what it finds in the next one.
  reports: async (task, stop) => {
    if (task.attempt === 1) {
      await alive(task, { progress: 0.5, details: { row: 7 } });
      await once(stop, "abort");
    }
    return [task.progress, task.details];
  },
  "until-stopped": async (task, stop) => {
    await once(stop, "abort");
    writeFileSync(`${DIR}/stopped`, "");
    return "too late";
  },
};
// Node passes a signal on after the answers that arrived meanwhile, so a test waits for this line.
process.on("SIGTERM", () => console.log("stopping"));
await work(process.argv[2], handlers, Number(process.argv[3]));

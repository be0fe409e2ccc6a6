// A server between functions and AWS, or an emulator of it. It passes on each call that the function's role allows, and
// refuses each other one as AWS does. The function says who it is by its session token.
//
// Arguments: the folder of the templates; the file for the calls of this run, whose folder has those of other runs; AWS's
// address; parameters of the stacks as `Name=value`. It prints its address. When its standard input ends, it prints a report.
// If the input is `whole`, all tests of the step have run: the file is written, and the report has what nothing needs.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { Agent, createServer, request as send } from "node:http";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { Judge, takenAway } from "./judge.mjs";
import { calls } from "./request.mjs";
import { System } from "./template.mjs";

/** With everything that the templates can have, so that every permission is judged. */
const WHOLE = {
  Callbacks: "on",
  EventsQueue: "true",
  Xray: "true",
  KmsKeyArn: "arn:aws:kms:us-east-1:000000000000:key/key",
  VpcSubnetIds: "subnet-0",
  VpcSecurityGroupIds: "sg-0",
};

const [folder, file, upstream, ...given] = process.argv.slice(2);
const templates = Object.fromEntries(["core", "worker"].map((name) => [name, readFileSync(`${folder}/${name}.yaml`, "utf8")]));
const judge = new Judge(templates, Object.fromEntries(given.map((one) => one.split("="))));
const aws = new URL(upstream);
const agent = new Agent({ keepAlive: true });
const refused = new Set();

/** Why the call isn't passed on, if it isn't. */
async function refusal(headers, body) {
  const deployed = headers["x-amz-security-token"];
  try {
    if (!deployed) return "a call without a function's session token";
    for (const call of calls(headers["x-amz-target"], body, judge.system.partitions)) {
      const reason = await judge.decide(deployed, call);
      if (reason) return reason;
    }
  } catch (error) {
    return `${deployed}: ${error.message}`;
  }
  return undefined;
}

async function pass(incoming, answer) {
  const parts = [];
  for await (const part of incoming) parts.push(part);
  const body = Buffer.concat(parts);
  const reason = await refusal(incoming.headers, body);
  if (reason) {
    refused.add(reason);
    answer.writeHead(400, { "content-type": "application/x-amz-json-1.0" });
    const error = { __type: "com.amazon.coral.service#AccessDeniedException", message: `not authorized: ${reason}` };
    answer.end(JSON.stringify(error));
    return;
  }
  const { method, url: path } = incoming;
  const headers = { ...incoming.headers, host: aws.host };
  const outgoing = send({ agent, host: aws.hostname, port: aws.port, method, path, headers }, (answered) => {
    answer.writeHead(answered.statusCode, answered.headers);
    answered.pipe(answer);
  });
  outgoing.on("error", () => answer.destroy());
  answer.on("close", () => outgoing.destroy());
  outgoing.end(body);
}

const server = createServer((incoming, answer) => pass(incoming, answer).catch(() => answer.destroy()));
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));

const report = { refused, unused: [], needed: {} };
if ((await text(process.stdin)) === "whole") {
  const runs = dirname(file);
  mkdirSync(runs, { recursive: true });
  writeFileSync(file, JSON.stringify(judge.made()));
  const made = readdirSync(runs).flatMap((run) => JSON.parse(readFileSync(`${runs}/${run}`, "utf8")));
  Object.assign(report, await takenAway(new System(templates, WHOLE), made));
}
console.log(JSON.stringify({ ...report, refused: [...refused] }));
process.exit();

// What the roles of the templates allow. The decision is that of iam-simulate.
import { runSimulation } from "@cloud-copilot/iam-simulate";
import { ACCOUNT, FUNCTIONS, SYSTEM, System } from "./template.mjs";

const KEYS = "dynamodb:LeadingKeys";

/** Whether these policies allow a call: an action with a resource, and the partition keys of its items. */
export async function isAllowed(policies, { action, resource, keys }) {
  const contextVariables = keys ? { [KEYS]: keys } : {};
  const principal = `arn:aws:sts::${ACCOUNT}:assumed-role/role/function`;
  const request = { principal, action, resource: { resource, accountId: ACCOUNT }, contextVariables };
  const simulation = { request, identityPolicies: policies, serviceControlPolicies: [], resourceControlPolicies: [] };
  const decided = await runSimulation(simulation, {});
  // A call of which IAM knows nothing is a mistake of this program.
  if (decided.resultType === "error") throw new Error(`${action} ${resource}: ${JSON.stringify(decided.errors)}`);
  return decided.overallResult === "Allowed";
}

/** Every worker is the same function with another queue, which has this name here. */
const OWN = "own";
export const WORKER = `worker-${OWN}`;

/** Decides on calls, and remembers them. */
export class Judge {
  constructor(templates, parameters) {
    this.system = new System(templates, parameters);
    /** Each different call with its decision, by its text. */
    this.calls = new Map();
  }

  /** A call of a function, by its deployed name, such as `tickover-tick`. Returns why it is refused, if it is. */
  async decide(deployed, call) {
    const [, system, fn] = /^(.+?)-(schedule|claim|complete|tick|gateway|worker-.+)$/.exec(deployed) ?? [];
    if (!fn) return `${deployed} is no function of the templates`;
    const queue = /^worker-(.+)/.exec(fn)?.[1];
    const resource = call.resource
      .replace(new RegExp(`:table/${system}(?=$|/)`), `:table/${SYSTEM}`)
      .replace(new RegExp(`^(arn:aws:(?:sqs|secretsmanager):.*:)${system}-`), `$1${SYSTEM}-`)
      .replace(new RegExp(`-work-${queue}(?=$|__high$|__low$)`), `-work-${OWN}`);
    // Policies know the kinds of records, not each of them.
    const kinds = call.keys && [...new Set(call.keys.map((key) => key.replace(/#.*/s, "#1")))].sort();
    const asked = { fn: queue ? WORKER : fn, action: call.action, resource, keys: kinds };
    const text = JSON.stringify(asked);
    if (!this.calls.has(text)) this.calls.set(text, { asked, decision: isAllowed(this.system.policies(asked.fn), asked) });
    if (await this.calls.get(text).decision) return undefined;
    return `the role of ${fn} may not ${asked.action} with ${asked.resource} ${kinds ?? ""}`;
  }

  /** The different calls so far. */
  made() {
    return [...this.calls.values()].map(({ asked }) => asked);
  }
}

/** A statement's parts as lists: IAM writes one entry with or without a list. */
function lists({ Action, Resource, Condition }) {
  const patterns = Condition && Object.values(Condition)[0][KEYS];
  return { actions: [Action].flat(), resources: [Resource].flat(), patterns: patterns ? [patterns].flat() : undefined };
}

/** The statement with other parts. Without any action, resource or pattern, there is none. */
function narrowed(statement, { actions, resources, patterns }) {
  if (!actions.length || !resources.length || patterns?.length === 0) return [];
  const Condition = patterns && { [Object.keys(statement.Condition)[0]]: { [KEYS]: patterns } };
  return [{ Effect: statement.Effect, Action: actions, Resource: resources, ...(Condition && { Condition }) }];
}

/** Each single permission of a policy, with the policy that is left without it. */
function* permissions(policy) {
  const statements = [policy.Statement].flat();
  for (const [at, statement] of statements.entries()) {
    const { actions, resources, patterns } = lists(statement);
    for (const action of actions) {
      for (const resource of resources) {
        for (const pattern of patterns ?? [undefined]) {
          const without = (list, one) => list.filter((other) => other !== one);
          const left = [
            ...narrowed(statement, { actions: without(actions, action), resources, patterns }),
            ...narrowed(statement, { actions: [action], resources: without(resources, resource), patterns }),
            ...(pattern ? narrowed(statement, { actions: [action], resources: [resource], patterns: without(patterns, pattern) }) : []),
          ];
          const document = { Version: policy.Version, Statement: statements.toSpliced(at, 1, ...left) };
          yield { action, permission: [action, resource, pattern].filter(Boolean).join(" "), document };
        }
      }
    }
  }
}

/**
 * Takes each permission away, one at a time, and decides on the calls again, and on those of AWS itself. Returns the
 * permissions without which no call would be refused, and for each function how many its own calls need.
 */
export async function takenAway(system, calls) {
  const needed = new Set();
  const all = new Set();
  const byFunction = {};
  for (const fn of [...FUNCTIONS, WORKER]) {
    const policies = system.policies(fn);
    const own = calls.filter((call) => call.fn === fn);
    const isMissed = async (among, action, left) => {
      for (const call of among) {
        if (call.action === action && !(await isAllowed(left, call))) return true;
      }
      return false;
    };
    byFunction[fn] = 0;
    for (const [at, { name, policy }] of policies.entries()) {
      for (const { action, permission, document } of permissions(policy)) {
        const left = policies.toSpliced(at, 1, { name, policy: document });
        const id = `${name}: ${permission}`;
        all.add(id);
        const isNeeded = await isMissed(own, action, left);
        if (isNeeded) byFunction[fn] += 1;
        if (isNeeded || (await isMissed(system.byAws(fn), action, left))) needed.add(id);
      }
    }
  }
  return { unused: [...all].filter((id) => !needed.has(id)).sort(), needed: byFunction };
}

// The roles of our functions with their policies, as CloudFormation would make them of the templates.
import { parseDocument } from "yaml";

export const ACCOUNT = "000000000000";
export const REGION = "us-east-1";
/** The functions of the core, each with the resource that is its role. */
const CORE = { schedule: "ScheduleRole", claim: "ClaimRole", complete: "CompleteRole", tick: "TickRole", gateway: "GatewayRole" };
const PSEUDO = { "AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com" };
/** The name of the system. */
export const SYSTEM = "system";
/** The names of the functions of the core. */
export const FUNCTIONS = Object.keys(CORE);
/** What CloudFormation leaves out. */
const NOTHING = Symbol("AWS::NoValue");

/** CloudFormation's short forms, such as `!Ref X` for `{Ref: X}`. */
const SHORT = ["Ref", "Sub", "GetAtt", "If", "Equals", "Not", "And", "Or", "Condition", "FindInMap", "Select", "Split"].flatMap((name) => {
  const long = name === "Ref" || name === "Condition" ? name : `Fn::${name}`;
  return ["scalar", "seq", "map"].map((kind) => ({
    tag: `!${name}`,
    collection: kind === "scalar" ? undefined : kind,
    resolve: (value) => ({ [long]: typeof value === "string" ? value : value.toJSON() }),
  }));
});

/** A template with values for its parameters. Those that aren't given have their defaults. */
export class Template {
  constructor(text, given) {
    this.text = parseDocument(text, { customTags: SHORT }).toJS();
    const defaults = Object.entries(this.text.Parameters).map(([name, { Default }]) => [name, Default]);
    const known = Object.entries(given).filter(([name]) => name in this.text.Parameters);
    this.parameters = { ...Object.fromEntries(defaults), ...Object.fromEntries(known) };
  }

  resource(name) {
    const found = this.text.Resources[name];
    if (!found) throw new Error(`the template has no resource ${name}`);
    return found;
  }

  /** The names of the resources of a type. */
  ofType(type) {
    return Object.keys(this.text.Resources).filter((name) => this.text.Resources[name].Type === type);
  }

  /** A part of the template with its references filled in. */
  value(node) {
    if (Array.isArray(node)) return node.map((one) => this.value(one)).filter((one) => one !== NOTHING);
    if (node === null || typeof node !== "object") return node;
    const entries = Object.entries(node);
    const [name, argument] = entries[0] ?? [];
    if (entries.length === 1 && (name === "Ref" || name.startsWith("Fn::"))) return this.call(name, argument);
    const values = entries.map(([key, one]) => [key, this.value(one)]);
    return Object.fromEntries(values.filter(([, one]) => one !== NOTHING));
  }

  call(name, argument) {
    if (name === "Ref") return this.reference(argument);
    if (name === "Fn::Sub") return this.substituted(argument);
    if (name === "Fn::GetAtt") return this.attribute(...argument.split("."));
    if (name === "Fn::If") return this.value(this.holds(argument[0]) ? argument[1] : argument[2]);
    // A policy of the core, which a worker's stack imports: its resource.
    if (name === "Fn::ImportValue") return { imported: "WorkerPolicy" };
    throw new Error(`policies can't use ${name} yet`);
  }

  reference(name) {
    if (name === "AWS::NoValue") return NOTHING;
    if (name in PSEUDO) return PSEUDO[name];
    if (name in this.parameters) return this.parameters[name];
    return { resource: name };
  }

  substituted(argument) {
    const [text, values] = Array.isArray(argument) ? argument : [argument, {}];
    return text.replace(/\$\{([^}]+)\}/g, (_, name) => (name in values ? this.value(values[name]) : this.reference(name)));
  }

  attribute(name, attribute) {
    const { Type, Properties } = this.resource(name);
    const arn = (service, id) => `arn:aws:${service}:${REGION}:${ACCOUNT}:${id}`;
    if (attribute === "Arn" && Type === "AWS::SQS::Queue") return arn("sqs", this.value(Properties.QueueName));
    if (attribute === "Arn" && Type === "AWS::Logs::LogGroup") return arn("logs", `log-group:${this.value(Properties.LogGroupName)}:*`);
    throw new Error(`policies can't use ${name}.${attribute} yet`);
  }

  /** Whether a condition of the template holds. */
  holds(name) {
    const decide = (node) => {
      const [[kind, argument]] = Object.entries(node);
      if (kind === "Condition") return this.holds(argument);
      if (kind === "Fn::Equals") return String(this.value(argument[0])) === String(this.value(argument[1]));
      if (kind === "Fn::Not") return !decide(argument[0]);
      if (kind === "Fn::And") return argument.every(decide);
      if (kind === "Fn::Or") return argument.some(decide);
      throw new Error(`conditions can't use ${kind} yet`);
    };
    return decide(this.text.Conditions[name]);
  }

  /** The policies of a role: the template's name of each with its document. */
  policies(role, imported) {
    const { Properties } = this.resource(role);
    const attached = this.value(Properties.ManagedPolicyArns ?? []).map((policy) => {
      if (policy.imported) return imported(policy.imported);
      return this.managed(policy.resource);
    });
    const own = this.value(Properties.Policies ?? []).map(({ PolicyDocument }) => ({ name: role, policy: PolicyDocument }));
    return [...attached, ...own];
  }

  /** A managed policy. */
  managed(name) {
    return { name, policy: this.value(this.resource(name).Properties.PolicyDocument) };
  }

  /** The attribute that is the partition key of the table, and of each of its indexes. */
  partitions() {
    const { KeySchema, GlobalSecondaryIndexes } = this.resource("Table").Properties;
    const hash = (schema) => schema.find((key) => key.KeyType === "HASH").AttributeName;
    return Object.fromEntries([["", hash(KeySchema)], ...GlobalSecondaryIndexes.map((index) => [index.IndexName, hash(index.KeySchema)])]);
  }
}

/** A core and the workers of one system. A function is named as its resource is, without the system: `tick`, `worker-orders`. */
export class System {
  constructor({ core, worker }, parameters) {
    this.texts = { core, worker };
    this.parameters = { ...parameters, System: SYSTEM };
    this.core = new Template(core, this.parameters);
    this.partitions = this.core.partitions();
  }

  /** The template of a function and the resource that is its role. */
  of(fn) {
    if (fn in CORE) return [this.core, CORE[fn]];
    const Queue = fn.slice("worker-".length);
    this.worker ??= new Template(this.texts.worker, { ...this.parameters, Queue });
    if (this.worker.parameters.Queue !== Queue) throw new Error(`not another queue: ${Queue}`);
    return [this.worker, "WorkerRole"];
  }

  policies(fn) {
    const [template, role] = this.of(fn);
    return template.policies(role, (name) => this.core.managed(name));
  }

  /** What AWS itself does under a function's role: it writes logs and traces, reads the function's queues, and uses the key. */
  byAws(fn) {
    const [template, role] = this.of(fn);
    const asked = template.ofType("AWS::Lambda::Function").find((name) => JSON.stringify(template.resource(name).Properties.Role).includes(role));
    const name = template.value(template.resource(asked).Properties.FunctionName);
    const arn = (service, id) => `arn:aws:${service}:${REGION}:${ACCOUNT}:${id}`;
    const log = arn("logs", `log-group:/aws/lambda/${name}:log-stream:2026/11/01/[$LATEST]0`);
    const calls = ["logs:CreateLogStream", "logs:PutLogEvents"].map((action) => ({ action, resource: log }));
    for (const source of template.ofType("AWS::Lambda::EventSourceMapping")) {
      const { FunctionName, EventSourceArn } = template.resource(source).Properties;
      if (!JSON.stringify(FunctionName).includes(`"${asked}"`)) continue;
      const actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
      calls.push(...actions.map((action) => ({ action, resource: template.value(EventSourceArn) })));
    }
    if (template.holds("HasXray")) {
      calls.push(...["xray:PutTraceSegments", "xray:PutTelemetryRecords"].map((action) => ({ action, resource: "*" })));
    }
    if (template.holds("HasVpc")) {
      const made = arn("ec2", "network-interface/eni-0");
      calls.push({ action: "ec2:CreateNetworkInterface", resource: made }, { action: "ec2:DeleteNetworkInterface", resource: made });
      calls.push({ action: "ec2:DescribeNetworkInterfaces", resource: "*" });
    }
    if (this.core.holds("HasKey")) {
      const key = this.core.parameters.KmsKeyArn;
      calls.push(...["kms:Decrypt", "kms:GenerateDataKey"].map((action) => ({ action, resource: key })));
    }
    return calls;
  }
}

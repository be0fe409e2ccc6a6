//! `cargo xtask stacks`: deploys `infra/core.yaml` and `infra/worker.yaml` into a new emulator, updates them, adds a
//! second worker, deletes all, and deploys and deletes both as the nested stacks of `infra/template.yaml`.
//!
//! It checks the templates, not the functions: SAM uploads the folders in `Code` as they are, unbuilt.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::{output, root, target_dir, without_cargos_own};
use crate::e2e::{DELETE_TABLE, LEFT_OVERS};
use crate::emulator::Emulator;
use crate::python;
use crate::test::at_emulator;

/// The value of the parameter `System`, and the name of the core's stack.
const SYSTEM: &str = "tickover";
/// What the core exports for its workers.
const EXPORT: &str = "tickover-tickover-worker-policy";
const WORKERS: [&str; 2] = ["orders", "emails"];

/// Arguments: the queues with workers, the expected visibility timeouts of these queues, the expected due shards of their
/// functions, and the queue whose worker is released by versions. Prints what is wrong, one problem in a line.
const CHECK: &str = r"
import boto3, sys
queues, visible, shards = (text.split(',') for text in sys.argv[1:4])
released = sys.argv[4]
functions, sqs, iam = boto3.client('lambda'), boto3.client('sqs'), boto3.client('iam')
configured = lambda name: functions.get_function_configuration(FunctionName=name)
variables = lambda found: found['Environment']['Variables']
core = variables(configured('tickover-claim'))
for name in core:
    if 'resolve:' in core[name]: print('not resolved:', name, core[name])
for queue, visibility, shard in zip(queues, visible, shards):
    worker = configured('tickover-worker-' + queue)
    theirs = variables(worker)
    own = {name: theirs[name] for name in ['TICKOVER_CALLBACK_SECRET_ID', 'TICKOVER_CALLBACK_URL']}
    expected = {**core, **own, 'TICKOVER_DUE_SHARDS': shard, 'TICKOVER_RETENTION': theirs['TICKOVER_RETENTION']}
    if theirs != expected: print(queue, 'has', theirs, 'and the core has', core)
    if theirs['TICKOVER_QUEUES'] != '*': print(queue, 'has a list of queues')
    url = sqs.get_queue_url(QueueName='tickover-work-' + queue)['QueueUrl']
    if url.rsplit('/', 1)[1] != core['TICKOVER_QUEUE_URLS'].rsplit('/', 1)[1].replace('{name}', queue): print(url, core)
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=['All'])['Attributes']
    if found['VisibilityTimeout'] != visibility: print(queue, 'is visible after', found['VisibilityTimeout'])
    if int(visibility) <= worker['Timeout']: print(queue, 'is visible before', worker['Timeout'])
    if 'tickover-dead-work-' + queue not in found['RedrivePolicy']: print(queue, 'redrives', found['RedrivePolicy'])
    sources = functions.list_event_source_mappings(EventSourceArn=found['QueueArn'])['EventSourceMappings']
    expected = 'tickover-worker-' + queue + (':live' if queue == released else '')
    if [source['FunctionArn'].split(':function:')[1] for source in sources] != [expected]: print(queue, 'has', sources)
    attached = iam.list_attached_role_policies(RoleName=worker['Role'].rsplit('/', 1)[1])['AttachedPolicies']
    if not any('WorkerPolicy' in policy['PolicyName'] for policy in attached): print(queue, 'may do', attached)
";

/// Argument: the queue. Prints each of its queues in SQS with what it has, one in a line: its name, the visibility timeout,
/// the dead-letter queue, and the functions that receive from it.
const CLASSES: &str = r"
import boto3, json, sys
functions, sqs = boto3.client('lambda'), boto3.client('sqs')
for url in sorted(sqs.list_queues(QueueNamePrefix='tickover-work-' + sys.argv[1]).get('QueueUrls', [])):
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=['All'])['Attributes']
    dead = json.loads(found['RedrivePolicy'])['deadLetterTargetArn'].rsplit(':', 1)[1]
    sources = functions.list_event_source_mappings(EventSourceArn=found['QueueArn'])['EventSourceMappings']
    receivers = ' '.join(source['FunctionArn'].split(':function:')[1] for source in sources)
    print(url.rsplit('/', 1)[1], found['VisibilityTimeout'], dead, receivers)
";

/// Arguments: functions without the system's name. Prints the secret and the address that each has for callbacks, one in a
/// line. A function has the secret's name, and its value nowhere.
const CALLBACKS: &str = r"
import boto3, sys
functions = boto3.client('lambda')
for name in sys.argv[1:]:
    found = functions.get_function_configuration(FunctionName='tickover-' + name)
    variables = found['Environment']['Variables']
    print(variables['TICKOVER_CALLBACK_SECRET_ID'], variables['TICKOVER_CALLBACK_URL'])
";

/// Argument: a new value of the secret of callbacks, or nothing. Prints the value that it has.
const SECRET: &str = r"
import boto3, sys
secrets, name = boto3.client('secretsmanager'), 'tickover-callbacks'
for value in sys.argv[1:]: secrets.put_secret_value(SecretId=name, SecretString=value)
print(secrets.get_secret_value(SecretId=name)['SecretString'])
";

/// Arguments: names of stacks, which are deleted in this order.
const DELETE: &str = r"
import boto3, sys
stacks = boto3.client('cloudformation')
for name in sys.argv[1:]:
    stacks.delete_stack(StackName=name)
    stacks.get_waiter('stack_delete_complete').wait(StackName=name, WaiterConfig={'Delay': 1, 'MaxAttempts': 60})
";

pub(crate) fn run() -> Result<()> {
    let folder = target_dir()?;
    let python = python::install(&folder.join("sam"), &root().join("infra/tools/sam.txt"), "samcli")?;
    let emulator = Emulator::start()?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    let stacks = Stacks { python, home: folder.join("sam/home"), emulator };
    stacks.apart()?;
    stacks.nested()?;
    println!(
        "stacks: the core and its workers were deployed, updated and deleted, and nothing is left of them"
    );
    Ok(())
}

struct Stacks {
    python: PathBuf,
    home: PathBuf,
    emulator: Emulator,
}

impl Stacks {
    /// Each template in stacks of its own.
    fn apart(&self) -> Result<()> {
        let [orders, emails] = WORKERS.map(|queue| format!("{SYSTEM}-worker-{queue}"));
        let refused = self.deploy("worker", &orders, &["MaxConcurrency=0"]);
        let reason = refused.err().context("a worker was deployed without its core")?;
        // SAM's table of events breaks the lines.
        let said: String = format!("{reason:#}").split_whitespace().collect();
        ensure!(said.contains("Export"), "a worker without its core failed for another reason: {reason:#}");
        self.python(DELETE, &[&orders])?;
        self.nothing_is_left()?;

        // All alarms, and the dashboard, although the environment leaves the dashboard out.
        self.deploy(
            "core",
            SYSTEM,
            &[&LOCAL[..], &["Alarms=all", "EventsQueue=true", "Lists=all"]].concat(),
        )?;
        self.deploy("worker", &orders, &["Architecture=x86_64", "MaxConcurrency=0", "Alarms=all"])?;
        self.check("orders", "90", "16", "")?;
        self.has_callbacks_at(&["gateway", "worker-orders"], &["none none", "none none"])?;

        self.deploy(
            "worker",
            &orders,
            &["Timeout=900", "Release=1", "Priorities=on", "MaxLowConcurrency=0"],
        )?;
        self.check("orders", "930", "16", "orders")?;
        self.has_classes("orders", &["", "__high", "__low"])?;
        self.deploy(
            "worker",
            &orders,
            &["Release=2", "StableVersion=1", "StablePart=0.9", "Priorities=off"],
        )?;
        self.has_classes("orders", &[""])?;
        // The parameters that aren't named keep their values. The export, which a worker imports, doesn't change.
        let callbacks = ["ApiKind=HttpApi", "Callbacks=on"];
        let changes = ["DueShards=32", "RetentionDays=9", "Alarms=essential"];
        self.deploy("core", SYSTEM, &[&changes[..], &callbacks[..]].concat())?;
        let parameters = ["Queue=emails", "Architecture=x86_64", "MaxConcurrency=0", "Callbacks=on"];
        self.deploy("worker", &emails, &parameters)?;
        self.check("orders,emails", "930,90", "16,32", "orders")?;
        // The worker that wasn't deployed again has what it had.
        let own = "tickover-callbacks https://API.execute-api.us-east-1.amazonaws.com";
        self.has_callbacks_at(&["gateway", "worker-emails", "worker-orders"], &[own, own, "none none"])?;
        let made = self.python(SECRET, &[])?.trim().to_owned();
        ensure!(made.len() == 64 && !made.contains(','), "the secret has {} characters", made.len());
        let rotated = format!("{},{made}", "n".repeat(64));
        self.python(SECRET, &[&rotated])?;
        self.deploy("core", SYSTEM, &["CallbackUrl=https://tasks.example.com"])?;
        self.has_callbacks_at(&["gateway"], &["tickover-callbacks https://tasks.example.com"])?;
        let kept = self.python(SECRET, &[])?;
        ensure!(kept.trim() == rotated, "a deployment has replaced the secret that an operator has set");

        let refused =
            self.python(DELETE, &[SYSTEM]).err().context("the core was deleted before its workers")?;
        ensure!(format!("{refused:#}").contains(EXPORT), "the core wasn't deleted: {refused:#}");
        self.python(DELETE, &[&emails])?;
        self.check("orders", "930", "16", "orders")?;
        self.python(DELETE, &[&orders, SYSTEM])?;
        self.python(DELETE_TABLE, &[SYSTEM])?;
        self.nothing_is_left()
    }

    /// Both templates in one deployment: it is made and deleted, and no more. In nested stacks, that emulator resolves no
    /// `{{resolve:…}}`, registers no exports, keeps no table, and loses the attributes of queues in an update.
    fn nested(&self) -> Result<()> {
        let given = [
            "Architecture=x86_64",
            "ApiKind=FunctionUrl",
            "TickSource=Rule",
            "MaxConcurrency=0",
            "DeletionProtection=false",
        ];
        self.deploy("template", "both", &given)?;
        self.python(DELETE, &["both"])?;
        self.nothing_is_left()
    }

    /// Deploys `infra/TEMPLATE.yaml` with the settings of the environment for emulators, and these parameters.
    fn deploy(&self, template: &str, stack: &str, parameters: &[&str]) -> Result<()> {
        let mut sam = Command::new(self.python.with_file_name("sam"));
        without_cargos_own(&mut sam).current_dir(root().join("infra")).stdin(Stdio::null());
        let environment = if template == "template" { "local" } else { &format!("{template}-local") };
        sam.args(["deploy", "--config-env", environment, "--stack-name", stack]);
        sam.args(["--template-file", &format!("{template}.yaml"), "--parameter-overrides"]).args(parameters);
        let endpoint = self.emulator.endpoint();
        at_emulator(&mut sam, &endpoint).env("AWS_ENDPOINT_URL", &endpoint);
        // SAM would otherwise use a folder in the user's home.
        sam.env("SAM_CLI_TELEMETRY", "0").env("__SAM_CLI_APP_DIR", &self.home);
        let done = sam.output().context("SAM could not be started")?;
        let said =
            [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        ensure!(done.status.success(), "{template}.yaml as {stack}:\n{said}");
        println!("stacks: {template}.yaml is deployed as {stack} with {}", parameters.join(" "));
        Ok(())
    }

    fn check(&self, queues: &str, visibilities: &str, shards: &str, released: &str) -> Result<()> {
        let problems = self.python(CHECK, &[queues, visibilities, shards, released])?;
        ensure!(problems.is_empty(), "what was deployed is wrong:\n{problems}");
        Ok(())
    }

    /// These functions have these secrets and addresses for callbacks, in which the API's id is `API`.
    fn has_callbacks_at(&self, functions: &[&str], addresses: &[&str]) -> Result<()> {
        let found = self.python(CALLBACKS, functions)?;
        let found: Vec<String> = found.lines().map(without_id).collect();
        ensure!(found == addresses, "callbacks of {functions:?} are at {found:?}, not at {addresses:?}");
        Ok(())
    }

    /// The queue has these class queues and no others. Each is received from and redrives as the queue itself does.
    fn has_classes(&self, queue: &str, suffixes: &[&str]) -> Result<()> {
        let found = self.python(CLASSES, &[queue])?;
        let expected = |suffix: &&str| {
            format!(
                "{SYSTEM}-work-{queue}{suffix} 930 {SYSTEM}-dead-work-{queue} {SYSTEM}-worker-{queue}:live"
            )
        };
        let expected: Vec<String> = suffixes.iter().map(expected).collect();
        let found: Vec<&str> = found.lines().collect();
        ensure!(found == expected, "the class queues are wrong: {found:#?}, not {expected:#?}");
        Ok(())
    }

    fn nothing_is_left(&self) -> Result<()> {
        let left = self.python(LEFT_OVERS, &[SYSTEM])?;
        ensure!(left.is_empty(), "the stacks were deleted, and this is left:\n{left}");
        Ok(())
    }

    fn python(&self, program: &str, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.python);
        let endpoint = self.emulator.endpoint();
        at_emulator(&mut command, &endpoint).env("AWS_ENDPOINT_URL", &endpoint);
        output(command.args(["-c", program]).args(args).stdin(Stdio::null()))
    }
}

/// A line with an address of an HTTP API, with `API` in place of its id.
fn without_id(line: &str) -> String {
    let parts = line.split_once("https://").and_then(|(before, address)| {
        let (_, rest) = address.split_once(".execute-api.")?;
        Some(format!("{before}https://API.execute-api.{rest}"))
    });
    parts.unwrap_or_else(|| line.to_owned())
}

/// What an emulator needs of the core.
const LOCAL: [&str; 6] = [
    "Architecture=x86_64",
    "ApiKind=FunctionUrl",
    "TickSource=Rule",
    "MaxConcurrency=0",
    "MaxTimerConcurrency=0",
    "DeletionProtection=false",
];

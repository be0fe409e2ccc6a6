//! `cargo xtask e2e`: deploys the template into a new emulator with the exact commands of `localstack/README.md`, runs
//! the end-to-end tests, deletes the stack, and checks that nothing is left of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use crate::build::{self, Architecture};
use crate::cargo::{cargo, output, root, status, succeed, target_dir, without_cargos_own};
use crate::emulator::Emulator;
use crate::test::{self, at_emulator};
use crate::{guide, python};

/// The stack's name in samconfig.toml, with which all of its resources' names start.
const STACK: &str = "tickover";
/// The environment of samconfig.toml in the guide's commands, and the one for arm64 machines.
const ENVIRONMENT: [&str; 2] = ["--config-env local", "--config-env local-arm64"];
/// The variable in which the tests find the stack's name.
const STACK_VARIABLE: &str = "TICKOVER_TEST_STACK";

/// Argument: the stack's name. Prints what is left of it, one resource in a line.
pub(crate) const LEFT_OVERS: &str = r"
import boto3, botocore, sys
stack = sys.argv[1]
try:
    for found in boto3.client('cloudformation').describe_stacks(StackName=stack)['Stacks']:
        if found['StackStatus'] != 'DELETE_COMPLETE': print('stack', stack, found['StackStatus'])
except botocore.exceptions.ClientError:
    pass
aws = lambda service: boto3.client(service)
for kind, names in {
    'table': aws('dynamodb').list_tables()['TableNames'],
    'queue': aws('sqs').list_queues().get('QueueUrls', []),
    'function': [found['FunctionName'] for found in aws('lambda').list_functions()['Functions']],
    'event source': [found['FunctionArn'] for found in aws('lambda').list_event_source_mappings()['EventSourceMappings']],
    'schedule': [found['Name'] for found in aws('scheduler').list_schedules()['Schedules']],
    'rule': [found['Name'] for found in aws('events').list_rules()['Rules']],
    'API': [found['Name'] for found in aws('apigatewayv2').get_apis()['Items']],
    'role': [found['RoleName'] for found in aws('iam').list_roles()['Roles']],
    'alarm': [found['AlarmName'] for found in aws('cloudwatch').describe_alarms()['MetricAlarms']],
    'parameter': [found['Name'] for found in aws('ssm').describe_parameters()['Parameters']],
    'policy': [found['PolicyName'] for found in aws('iam').list_policies(Scope='Local')['Policies']],
    'log group': [found['logGroupName'] for found in aws('logs').describe_log_groups()['logGroups']],
    'dashboard': [found['DashboardName'] for found in aws('cloudwatch').list_dashboards()['DashboardEntries']],
}.items():
    for name in names:
        if stack in name: print(kind, name)
";

/// Builds, deploys and calls the deployed API with the guide's commands, runs `cargo test --test end_to_end ARGS`, and
/// deletes the stack. Returns the tests' exit status.
pub(crate) fn run(args: &[String]) -> Result<ExitStatus> {
    let sam = Sam::install()?;
    // One call of cargo builds all functions. SAM then makes six calls, which find them built.
    build::run(Architecture::here())?;
    // Built before the emulator starts.
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-fail-fast"]);
    tests.args(test::FEATURES);
    succeed(
        cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-run"]).args(test::FEATURES),
    )?;

    let emulator = Emulator::start()?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    sam.follow_the_guide("sam build", &emulator)?;
    at_emulator(&mut tests, &emulator).env(STACK_VARIABLE, STACK);
    let ended = status(tests.arg("--").args(args))?;
    if ended.success() {
        sam.delete(&emulator)?;
    }
    Ok(ended)
}

/// SAM, and the `PATH` for it.
struct Sam {
    python: PathBuf,
    path: OsString,
    folder: PathBuf,
}

impl Sam {
    fn install() -> Result<Self> {
        let target = target_dir()?;
        let requirements = root().join("infra/tools/sam.txt");
        let python = python::install(&target.join("sam"), &requirements, "samcli")?;
        let ours = python.parent().context("a program without a folder")?.to_owned();
        // Our folder last: cargo-lambda finds its linker through the first `python3`, which must be the one installed
        // with it.
        let theirs = build::path()?;
        let folders = std::env::split_paths(&theirs).chain(std::iter::once(ours));
        let path = std::env::join_paths(folders).context("PATH has a folder with a colon in its name")?;
        Ok(Self { python, path, folder: target.join("e2e") })
    }

    /// Runs the guide's block of commands that contains this text, adapted only to this machine's processor.
    fn follow_the_guide(&self, having: &str, emulator: &Emulator) -> Result<()> {
        let block = guide::block(guide::LOCAL, having)?;
        let block = match Architecture::here() {
            Architecture::X86 => block,
            Architecture::Arm64 => block.replace(ENVIRONMENT[0], ENVIRONMENT[1]),
        };
        let mut shell = Command::new("sh");
        // Prints each command (`-x`), and stops at the first that fails (`-e`).
        without_cargos_own(shell.args(["-exc", &block])).current_dir(root()).stdin(Stdio::null());
        shell.env("PATH", &self.path).env("SAM_CLI_TELEMETRY", "0");
        // SAM would otherwise use a folder in the user's home.
        shell.env("__SAM_CLI_APP_DIR", self.folder.join("sam"));
        succeed(at(&mut shell, emulator)).with_context(|| format!("{}: `{having}`", guide::LOCAL))
    }

    /// Deletes the stack and checks that nothing is left of it.
    fn delete(&self, emulator: &Emulator) -> Result<()> {
        self.follow_the_guide("sam delete", emulator)?;
        let mut check = Command::new(&self.python);
        check.args(["-c", LEFT_OVERS, STACK]);
        let left = output(at(&mut check, emulator))?;
        anyhow::ensure!(left.is_empty(), "the stack was deleted, and this is left:\n{left}");
        println!("e2e: the stack is deleted, and nothing is left of it");
        Ok(())
    }
}

fn at<'a>(command: &'a mut Command, emulator: &Emulator) -> &'a mut Command {
    at_emulator(command, emulator).env("AWS_ENDPOINT_URL", emulator.endpoint())
}

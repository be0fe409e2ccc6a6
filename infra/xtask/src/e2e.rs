//! `cargo xtask e2e`: the template as users deploy it, by the commands of `localstack/README.md` as they stand there,
//! into an emulator of its own; the tests of the whole; and whether all of it is gone again afterwards.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use crate::build::{self, Architecture};
use crate::cargo::{cargo, output, root, status, succeed, target_dir, without_cargos_own};
use crate::emulator::Emulator;
use crate::test::at_emulator;
use crate::{guide, python};

/// The stack, and the beginning of all its names: that of samconfig.toml.
const STACK: &str = "tickover";
/// The environment of samconfig.toml that the guide's commands name, and the one for machines with arm64.
const ENVIRONMENT: [&str; 2] = ["--config-env local", "--config-env local-arm64"];
/// Where the tests find its name.
const STACK_VARIABLE: &str = "TICKOVER_TEST_STACK";

/// Arguments: the stack's name. Prints what is left of it, one thing a line.
const LEFT_OVERS: &str = r"
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
    'log group': [found['logGroupName'] for found in aws('logs').describe_log_groups()['logGroups']],
    'dashboard': [found['DashboardName'] for found in aws('cloudwatch').list_dashboards()['DashboardEntries']],
}.items():
    for name in names:
        if stack in name: print(kind, name)
";

/// Builds, deploys and asks the deployed API by the guide's commands, runs `cargo test --test end_to_end ARGS`, and
/// deletes the stack. Returns how the tests ended.
pub(crate) fn run(args: &[String]) -> Result<ExitStatus> {
    let sam = Sam::install()?;
    // One invocation of cargo for all functions; SAM's six, one a function, then find them built.
    build::run(Architecture::here())?;
    // Built before the emulator's clock runs.
    succeed(&mut cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-run"]))?;

    let emulator = Emulator::start()?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    sam.follow_the_guide("sam build", &emulator)?;
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-fail-fast"]);
    at_emulator(&mut tests, &emulator).env(STACK_VARIABLE, STACK);
    let ended = status(tests.arg("--").args(args))?;
    if ended.success() {
        sam.delete(&emulator)?;
    }
    Ok(ended)
}

/// SAM, and what it finds on its `PATH`.
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
        // Ours last: cargo-lambda looks for its linker in the first `python3`, which must be the one beside it.
        let theirs = build::path()?;
        let folders = std::env::split_paths(&theirs).chain(std::iter::once(ours));
        let path = std::env::join_paths(folders).context("PATH has a folder with a colon in its name")?;
        Ok(Self { python, path, folder: target.join("e2e") })
    }

    /// Runs the guide's block of commands that has this in it, as it stands there but for this machine's processor.
    fn follow_the_guide(&self, having: &str, emulator: &Emulator) -> Result<()> {
        let block = guide::block(guide::LOCAL, having)?;
        let block = match Architecture::here() {
            Architecture::X86 => block,
            Architecture::Arm64 => block.replace(ENVIRONMENT[0], ENVIRONMENT[1]),
        };
        let mut shell = Command::new("sh");
        // Each command is shown, and the first that fails ends it.
        without_cargos_own(shell.args(["-exc", &block])).current_dir(root()).stdin(Stdio::null());
        shell.env("PATH", &self.path).env("SAM_CLI_TELEMETRY", "0");
        // What SAM would otherwise keep in the user's own folder.
        shell.env("__SAM_CLI_APP_DIR", self.folder.join("sam"));
        succeed(at(&mut shell, emulator)).with_context(|| format!("{}: `{having}`", guide::LOCAL))
    }

    /// Deletes the stack and looks for what is left of it.
    fn delete(&self, emulator: &Emulator) -> Result<()> {
        self.follow_the_guide("sam delete", emulator)?;
        let mut look = Command::new(&self.python);
        look.args(["-c", LEFT_OVERS, STACK]);
        let left = output(at(&mut look, emulator))?;
        anyhow::ensure!(left.is_empty(), "the stack was deleted, and this is left:\n{left}");
        println!("e2e: the stack is deleted, and nothing is left of it");
        Ok(())
    }
}

fn at<'a>(command: &'a mut Command, emulator: &Emulator) -> &'a mut Command {
    at_emulator(command, emulator).env("AWS_ENDPOINT_URL", emulator.endpoint())
}

//! `cargo xtask e2e`: the template as users deploy it, into an emulator of its own; the tests of the whole; and
//! whether all of it is gone again afterwards.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use crate::build::{self, Architecture};
use crate::cargo::{cargo, output, root, status, succeed, target_dir, without_cargos_own};
use crate::emulator::Emulator;
use crate::python;
use crate::test::at_emulator;

/// The stack, and the beginning of all its names.
const STACK: &str = "tickover-e2e";
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

/// Builds, deploys, runs `cargo test --test end_to_end ARGS`, and deletes the stack. Returns how the tests ended.
pub(crate) fn run(args: &[String]) -> Result<ExitStatus> {
    let sam = Sam::install()?;
    // One invocation of cargo for all functions; SAM's six, one a function, then find them built.
    build::run(Architecture::here())?;
    let template = sam.build()?;
    // Built before the emulator's clock runs.
    succeed(&mut cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-run"]))?;

    let emulator = Emulator::start()?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    sam.deploy(&template, &emulator)?;
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
        Ok(Self { python, path: build::path()?, folder: target.join("e2e") })
    }

    /// Builds the template with its functions, for this machine. Returns the one to deploy.
    fn build(&self) -> Result<PathBuf> {
        let folder = self.folder.join("build");
        let architecture = format!("Architecture={}", Architecture::here().name());
        let mut sam = self.command(&["build", "--config-env", "local"]);
        sam.arg("--build-dir").arg(&folder).args(["--parameter-overrides", &architecture]);
        succeed(&mut sam)?;
        Ok(folder.join("template.yaml"))
    }

    /// Deploys it as a user does who has an emulator: with what samconfig.toml calls `local`.
    fn deploy(&self, template: &Path, emulator: &Emulator) -> Result<()> {
        let mut deploy = self.command(&["deploy", "--config-env", "local", "--no-progressbar"]);
        deploy.arg("--config-file").arg(root().join("infra/samconfig.toml"));
        deploy.arg("--template-file").arg(template).args(["--stack-name", STACK]);
        succeed(at(&mut deploy, emulator)).context("the template could not be deployed")
    }

    /// Deletes the stack and looks for what is left of it.
    fn delete(&self, emulator: &Emulator) -> Result<()> {
        let mut delete = self.command(&["delete", "--config-env", "local", "--no-prompts"]);
        delete.args(["--stack-name", STACK]);
        succeed(at(&mut delete, emulator))?;
        let mut look = Command::new(&self.python);
        look.args(["-c", LEFT_OVERS, STACK]);
        let left = output(at(&mut look, emulator))?;
        anyhow::ensure!(left.is_empty(), "the stack was deleted, and this is left:\n{left}");
        println!("e2e: the stack is deleted, and nothing is left of it");
        Ok(())
    }

    /// `sam ARGS` in the template's folder.
    fn command(&self, args: &[&str]) -> Command {
        let mut sam = Command::new(self.python.with_file_name("sam"));
        without_cargos_own(sam.args(args)).current_dir(root().join("infra")).stdin(Stdio::null());
        sam.env("PATH", &self.path).env("SAM_CLI_TELEMETRY", "0").env("AWS_DEFAULT_REGION", "us-east-1");
        // What it would otherwise keep in the user's own folder.
        sam.env("__SAM_CLI_APP_DIR", self.folder.join("sam"));
        sam
    }
}

fn at<'a>(command: &'a mut Command, emulator: &Emulator) -> &'a mut Command {
    at_emulator(command, emulator).env("AWS_ENDPOINT_URL", emulator.endpoint())
}

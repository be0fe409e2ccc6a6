//! `cargo xtask e2e`: deploys a core, a worker and queues into a new emulator with the exact commands of
//! `localstack/README.md`, runs the end-to-end tests, deletes the stacks, and checks that nothing is left of them.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

use crate::build::{self, Architecture};
use crate::cargo::{cargo, output, root, status, succeed, target_dir, without_cargos_own};
use crate::emulator::Emulator;
use crate::test::{self, at_emulator};
use crate::{guide, python};

/// The system's name, with which all names of stacks and resources start.
const SYSTEM: &str = "tickover";
/// The settings of the guide's commands.
const SETTINGS: &str = "infra/samconfig.toml";
/// The variable in which the tests find the system's name.
const SYSTEM_VARIABLE: &str = "TICKOVER_TEST_SYSTEM";

/// Argument: the system's name. Prints what is left of it, one resource in a line.
pub(crate) const LEFT_OVERS: &str = r"
import boto3, sys
system = sys.argv[1]
aws = lambda service: boto3.client(service)
stacks = aws('cloudformation').describe_stacks()['Stacks']
for kind, names in {
    'stack': [found['StackName'] for found in stacks if found['StackStatus'] != 'DELETE_COMPLETE'],
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
        if system in name: print(kind, name)
";

/// Argument: the table, which its stack keeps. Deletes it, and fails if it isn't there.
pub(crate) const DELETE_TABLE: &str =
    "import boto3, sys; boto3.client('dynamodb').delete_table(TableName=sys.argv[1])";

/// Builds, deploys and calls the deployed API with the guide's commands, runs `cargo test --test end_to_end ARGS`, and
/// deletes the stacks. Returns the tests' exit status.
pub(crate) fn run(args: &[String]) -> Result<ExitStatus> {
    let sam = Sam::install()?;
    // Built before the emulator starts.
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-fail-fast"]);
    tests.args(test::FEATURES);
    succeed(
        cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-run"]).args(test::FEATURES),
    )?;

    let emulator = Emulator::start()?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    for having in ["sam build", "ApiKind=HttpApi"] {
        sam.follow_the_guide(having, &emulator)?;
    }
    at_emulator(&mut tests, &emulator).env(SYSTEM_VARIABLE, SYSTEM);
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
            Architecture::Arm64 => block.replace("--config-env", &self.settings_for_arm64()?),
        };
        let mut shell = Command::new("sh");
        // Prints each command (`-x`), and stops at the first that fails (`-e`).
        without_cargos_own(shell.args(["-exc", &block])).current_dir(root()).stdin(Stdio::null());
        shell.env("PATH", &self.path).env("SAM_CLI_TELEMETRY", "0");
        // SAM would otherwise use a folder in the user's home.
        shell.env("__SAM_CLI_APP_DIR", self.folder.join("sam"));
        succeed(at(&mut shell, emulator)).with_context(|| format!("{}: `{having}`", guide::LOCAL))
    }

    /// SAM's options for the same settings with functions for arm64, before an environment's name.
    fn settings_for_arm64(&self) -> Result<String> {
        let settings = fs::read_to_string(root().join(SETTINGS)).context(SETTINGS)?;
        let names = [Architecture::X86, Architecture::Arm64].map(Architecture::name);
        fs::create_dir_all(&self.folder)?;
        let file = self.folder.join("samconfig.toml");
        fs::write(&file, settings.replace(names[0], names[1]))?;
        Ok(format!("--config-file '{}' --config-env", file.display()))
    }

    /// Deletes the stacks and the table, and checks that nothing else is left of them.
    fn delete(&self, emulator: &Emulator) -> Result<()> {
        self.follow_the_guide("sam delete", emulator)?;
        let run = |program: &str| {
            let mut python = Command::new(&self.python);
            output(at(python.args(["-c", program, SYSTEM]), emulator))
        };
        run(DELETE_TABLE).context("the table wasn't kept")?;
        let left = run(LEFT_OVERS)?;
        ensure!(left.is_empty(), "the stacks were deleted, and this is left:\n{left}");
        println!("e2e: the stacks are deleted, and nothing is left of them");
        Ok(())
    }
}

fn at<'a>(command: &'a mut Command, emulator: &Emulator) -> &'a mut Command {
    at_emulator(command, emulator).env("AWS_ENDPOINT_URL", emulator.endpoint())
}

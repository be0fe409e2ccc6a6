//! `cargo xtask e2e`: deploys a core, a worker and queues, runs the end-to-end tests, deletes the stacks, and checks that
//! nothing is left of them.
//!
//! By default it does so in a new emulator, with the exact commands of `localstack/README.md`, and then also with those of
//! the guides for AWS that the emulator can take. Then it rehearses what it does in an account. With `--localstack` it uses a
//! `LocalStack` that runs, for the first part. With `--account`, it does so in an AWS account: that is the acceptance before
//! a release.

mod account;
mod bound;
mod guides;
mod steps;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::build::{self, Architecture};
use crate::cargo::{
    cargo, output, root, search_path, status, succeed, target_dir, without_cargos_own, without_clippy,
};
use crate::emulator::Emulator;
use crate::test::{self, at_emulator};
use crate::{guide, judge, localstack, project, python};

/// The system's name in an emulator, with which all names of stacks and resources start.
const SYSTEM: &str = "tickover";
/// What the guide's block of commands contains that builds and deploys.
const DEPLOY: &str = "sam build";
/// The name of a new project, and of its queue.
const PROJECT: &str = "shop";
/// What its stack needs in an emulator.
const PROJECTS_PARAMETERS: &str = "Architecture=x86_64 MaxConcurrency=0 MaxLowConcurrency=0";
/// The settings of the guide's commands.
const SETTINGS: &str = "infra/samconfig.toml";
/// The variable in which the tests find the system's name.
const SYSTEM_VARIABLE: &str = "TICKOVER_TEST_SYSTEM";
/// The variable in which the tests see that the emulator is `LocalStack`.
const LOCALSTACK_VARIABLE: &str = "TICKOVER_TEST_LOCALSTACK";
/// The variable in which the tests find the program that decides on policies where AWS can't be asked.
const DECIDE_VARIABLE: &str = "TICKOVER_TEST_DECIDE";
/// The service that `LocalStack`'s free edition doesn't have, though the templates may use it.
const LOCALSTACK_LACKS: &str = "apigatewayv2";
/// The variable in which the tests find a Python with boto3, and SAM beside it.
const PYTHON_VARIABLE: &str = "TICKOVER_TEST_PYTHON";
/// The tests of the rehearsal that follows all tests: those that are for an account, and those with unsigned and signed calls.
/// The others have just passed in a system of the same templates.
const REHEARSED: [&str; 2] = ["account::", "tasks::"];

/// Arguments: the system's name, and services that the emulator lacks. Prints what is left of the system, one resource in
/// a line.
pub(crate) const LEFT_OVERS: &str = include_str!("../../tools/left_overs.py");

/// Argument: the table, which its stack keeps. Deletes it, and fails if it isn't there.
pub(crate) const DELETE_TABLE: &str =
    "import boto3, sys; boto3.client('dynamodb').delete_table(TableName=sys.argv[1])";

/// Options of `cargo xtask e2e`.
#[derive(Args, Default)]
pub(crate) struct E2eArgs {
    /// Use your AWS account instead of an emulator, with your own credentials: the acceptance before a release. It deploys
    /// two systems, PREFIX and PREFIX-again, each with a core and a worker, and PREFIX with two queues. All their names
    /// begin with PREFIX. At every end, also after Ctrl-C, it deletes their stacks, tables, log groups and archives. First
    /// it prints the account and what the run may cost at most. It refuses a PREFIX of which there is anything already
    #[arg(long, num_args = 2, value_names = ["REGION", "PREFIX"])]
    account: Vec<String>,
    /// The number of the account that may be used. Without it, `--account` only prints what it would do
    #[arg(long, value_name = "ACCOUNT-ID", requires = "account")]
    confirm: Option<String>,
    /// Do in a new emulator what `--account` does, and skip aloud what an emulator can't show
    #[arg(long, conflicts_with = "account")]
    rehearse: bool,
    /// Use `LocalStack`, running on port 4566, and not a new emulator. It must have nothing of the system `tickover`
    #[arg(long, conflicts_with_all = ["account", "rehearse"])]
    localstack: bool,
    /// Passed to the tests, such as a part of their names
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds, deploys, runs `cargo test --test end_to_end ARGS`, and deletes the stacks. Returns the tests' exit status.
pub(crate) fn run(args: &E2eArgs) -> Result<ExitStatus> {
    if args.rehearse {
        return account::rehearse(&args.args);
    }
    match args.account.as_slice() {
        [] if args.localstack => in_localstack(&args.args),
        [] => {
            let ended = in_emulator(&args.args)?;
            let is_whole = args.args.is_empty() && ended.success();
            if is_whole { account::rehearse(&REHEARSED.map(str::to_owned)) } else { Ok(ended) }
        }
        [region, prefix] => account::run(region, prefix, args.confirm.as_deref(), &args.args),
        _ => anyhow::bail!("--account needs a region and a prefix"),
    }
}

/// Deploys with the guide's commands, and calls the deployed API with them. If a test fails, the emulator ends with what
/// was deployed.
fn in_emulator(args: &[String]) -> Result<ExitStatus> {
    let sam = Sam::install()?;
    // Built before the emulator starts. SAM finds the functions built: it would link one after the other. They come first,
    // because the tests' build may have to wait until another one has ended.
    build::run(Architecture::here())?;
    build_tests()?;
    let mut emulator = Emulator::start_judged("e2e")?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    let endpoint = emulator.endpoint();
    for having in [DEPLOY, "ApiKind=HttpApi"] {
        sam.follow_the_guide(having, &endpoint)?;
    }
    let ended = sam.test(&endpoint, Kind::Ministack, args);
    // A refused call is why a test fails.
    let is_whole = args.is_empty() && ended.as_ref().is_ok_and(ExitStatus::success);
    emulator.conclude(is_whole).and(ended)
}

/// The same in a `LocalStack` that somebody has started. Its API is a function URL. If a test fails, what was deployed
/// stays.
fn in_localstack(args: &[String]) -> Result<ExitStatus> {
    let (sam, endpoint) = (Sam::install()?, localstack::endpoint());
    localstack::is_up()?;
    let there = sam.left_overs(&endpoint, Kind::LocalStack)?;
    ensure!(there.is_empty(), "there is a system `{SYSTEM}` in it already:\n{there}");
    build_tests()?;
    sam.follow_the_guide(DEPLOY, &endpoint)?;
    sam.test(&endpoint, Kind::LocalStack, args)
}

fn build_tests() -> Result<()> {
    succeed(
        cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-run"]).args(test::FEATURES),
    )
}

/// `cargo test` of the end-to-end tests with this system.
fn tests(system: &str, python: &Path, args: &[String]) -> Command {
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "end_to_end", "--no-fail-fast"]);
    tests.args(test::FEATURES).arg("--").args(args);
    tests.env(SYSTEM_VARIABLE, system).env(PYTHON_VARIABLE, python);
    tests
}

/// The emulators.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ministack,
    /// It deletes the table with its stack, though the template says to keep it.
    LocalStack,
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
        let path = search_path(folders)?;
        Ok(Self { python, path, folder: target.join("e2e") })
    }

    /// Runs the guide's block of commands that contains this text, adapted only to this machine's processor.
    fn follow_the_guide(&self, having: &str, endpoint: &str) -> Result<()> {
        let block = guide::block(guide::LOCAL, having)?;
        let block = match Architecture::here() {
            Architecture::X86 => block,
            Architecture::Arm64 => block.replace("--config-env", &self.settings_for_arm64()?),
        };
        self.shell(&block, root(), endpoint).with_context(|| format!("{}: `{having}`", guide::LOCAL))
    }

    /// Prints each command (`-x`), and stops at the first that fails (`-e`).
    fn shell(&self, commands: &str, folder: &Path, endpoint: &str) -> Result<()> {
        let mut shell = Command::new("sh");
        self.environment(without_clippy(shell.args(["-exc", commands])));
        shell.current_dir(folder).stdin(Stdio::null());
        succeed(at(&mut shell, endpoint))
    }

    /// The environment of `sam`.
    fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        without_cargos_own(command).env("PATH", &self.path).env("SAM_CLI_TELEMETRY", "0");
        // SAM would otherwise use a folder in the user's home.
        command.env("__SAM_CLI_APP_DIR", self.folder.join("sam"))
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

    /// Deploys a new project's worker beside the others, tests everything, and if that succeeds, deletes it.
    fn test(&self, endpoint: &str, kind: Kind, args: &[String]) -> Result<ExitStatus> {
        let project = self.deploy_a_project(endpoint)?;
        let mut tests = tests(SYSTEM, &self.python, args);
        tests.env(DECIDE_VARIABLE, judge::decider()?);
        if kind == Kind::LocalStack {
            tests.env(LOCALSTACK_VARIABLE, "true");
        }
        let ended = status(at_emulator(&mut tests, endpoint))?;
        if ended.success() {
            self.shell("sam delete --config-env dev --no-prompts", &project, endpoint)?;
            self.delete(endpoint, kind)?;
        }
        if ended.success() && kind == Kind::Ministack && args.is_empty() {
            self.follow_the_guides_for_aws(endpoint)?;
        }
        Ok(ended)
    }

    /// Makes a project, and builds and deploys its worker as its README says. Returns its folder.
    fn deploy_a_project(&self, endpoint: &str) -> Result<PathBuf> {
        let folder = project::create(PROJECT)?;
        let readme = folder.join("README.md");
        let readme = readme.to_str().context("a path that isn't UTF-8")?;
        let block = guide::block(readme, "sam deploy --config-env dev")?;
        let (build, deploy) = block.split_once('\n').context("a block of one line")?;
        ensure!(build.starts_with("cargo lambda build "), "the README builds by `{build}`");
        let here = Architecture::here();
        let build = build.replace(Architecture::Arm64.flag(), here.flag());
        // In our target folder, where its dependencies are built already: they are those of our worker.
        let build = format!(
            "export CARGO_NET_OFFLINE=true CARGO_TARGET_DIR='{}'\n{build} --lambda-dir target/lambda",
            target_dir()?.display()
        );
        let parameters = PROJECTS_PARAMETERS.replace(Architecture::X86.name(), here.name());
        self.shell(&format!("{build}\n{} {parameters}", deploy.trim_end()), &folder, endpoint)?;
        Ok(folder)
    }

    /// Deletes all that the guide has deployed.
    fn delete(&self, endpoint: &str, kind: Kind) -> Result<()> {
        self.follow_the_guide("sam delete", endpoint)?;
        self.nothing_is_left(endpoint, kind)
    }

    /// Deletes the table if it is kept, and checks that nothing else is left.
    fn nothing_is_left(&self, endpoint: &str, kind: Kind) -> Result<()> {
        if kind == Kind::Ministack {
            self.run(DELETE_TABLE, endpoint, &[]).context("the table wasn't kept")?;
        }
        let left = self.left_overs(endpoint, kind)?;
        ensure!(left.is_empty(), "the stacks were deleted, and this is left:\n{left}");
        println!("e2e: the stacks are deleted, and nothing is left of them");
        Ok(())
    }

    /// What there is of the system.
    fn left_overs(&self, endpoint: &str, kind: Kind) -> Result<String> {
        let lacking: &[&str] = match kind {
            Kind::Ministack => &[],
            Kind::LocalStack => &[LOCALSTACK_LACKS],
        };
        self.run(LEFT_OVERS, endpoint, lacking)
    }

    fn run(&self, program: &str, endpoint: &str, args: &[&str]) -> Result<String> {
        let mut python = Command::new(&self.python);
        output(at(python.args(["-c", program, SYSTEM]).args(args), endpoint))
    }
}

fn at<'a>(command: &'a mut Command, endpoint: &str) -> &'a mut Command {
    at_emulator(command, endpoint).env("AWS_ENDPOINT_URL", endpoint)
}

//! `cargo xtask test`: runs all tests, with the programs that they need.

mod programs;

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::cargo::{cargo, succeed};
use crate::emulator::Emulator;
use crate::judge::Judge;

/// The variable in which the tests find the emulator's address.
pub(crate) const ENDPOINT: &str = "TICKOVER_TEST_ENDPOINT";
/// The variable in which the tests find the judge's address, for functions.
const JUDGE: &str = "TICKOVER_TEST_JUDGE";
/// Where the random numbers of properties begin, unless the caller says so: what a change is tested with depends on
/// nothing else. `cargo test` goes on looking elsewhere.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "7");
/// What the tests' systems have that isn't a default of the templates.
const PARAMETERS: &[&str] = &["Callbacks=on", "EventsQueue=true"];

/// What the whole workspace is tested with: the tool as it is released.
pub(crate) const FEATURES: &[&str] = &["--features", "tickover-cli/aws"];

/// The test programs that other commands run, with what these need. `--tests` leaves them out.
const APART: &[&str] = &["--test", "end_to_end", "--test", "workers", "--test", "browser"];

/// Variables through which the tests could reach a real account.
const REAL_AWS: &[&str] = &[
    "AWS_CA_BUNDLE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_SQS",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_SESSION_TOKEN",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
];

/// Variables that make the tests use the emulator, whatever the machine's configuration.
const DUMMY_AWS: &[(&str, &str)] = &[
    ("AWS_ACCESS_KEY_ID", "test"),
    ("AWS_SECRET_ACCESS_KEY", "test"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_DEFAULT_REGION", "us-east-1"),
    ("AWS_CONFIG_FILE", "/dev/null"),
    ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ("AWS_EC2_METADATA_DISABLED", "true"),
    ("NO_PROXY", "127.0.0.1,localhost"),
];

/// Builds, then runs the tests with a new emulator: all of them, or those of `cargo test ARGS`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    build()?;
    let emulator = Emulator::start()?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    run_at(&emulator.endpoint(), args)
}

/// Builds all programs and tests. Tests start our binaries as separate processes, and cargo builds only those of the
/// packages it tests. Built together with the tests, the dependencies get the same features and are built once.
pub(crate) fn build() -> Result<()> {
    for targets in [&["--bins", "--tests", "--examples"][..], APART] {
        succeed(cargo(&["build", "--workspace", "--locked"]).args(targets).args(FEATURES))?;
    }
    Ok(())
}

/// Runs the tests with a running emulator. Without arguments, all of them, and prints how long each program took. With
/// arguments, cargo runs the tests that they choose.
pub(crate) fn run_at(endpoint: &str, args: &[String]) -> Result<()> {
    let judge = Judge::start("test", endpoint, PARAMETERS)?;
    let judged = |command: &mut Command| {
        at_emulator(command, endpoint).env(JUDGE, judge.address());
        if !is_set(SEED.0) {
            command.env(SEED.0, SEED.1);
        }
    };
    let ended = if args.is_empty() {
        programs::run(&judged)
    } else {
        let mut tests = cargo(&["test", "--locked", "--no-fail-fast"]);
        if !chooses_packages(args) {
            tests.arg("--workspace").args(FEATURES);
        }
        judged(tests.args(args));
        succeed(&mut tests)
    };
    // A refused call is why a test fails.
    let is_whole = args.is_empty() && ended.is_ok();
    judge.conclude(is_whole).and(ended)
}

#[expect(clippy::disallowed_methods, reason = "proptest's own variable, not a setting of Tickover")]
fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some()
}

/// Makes a command use the emulator at this address, and no real account.
pub(crate) fn at_emulator<'a>(command: &'a mut Command, endpoint: &str) -> &'a mut Command {
    away_from_aws(command).env(ENDPOINT, endpoint)
}

/// Keeps a command and its child processes from any real account.
pub(crate) fn away_from_aws(command: &mut Command) -> &mut Command {
    for name in REAL_AWS {
        command.env_remove(name);
    }
    command.envs(DUMMY_AWS.iter().copied())
}

/// Whether the arguments choose packages. Cargo ignores `-p` beside `--workspace`, and rejects `--workspace` given
/// twice.
fn chooses_packages(args: &[String]) -> bool {
    let mut cargos_own = args.iter().take_while(|arg| *arg != "--");
    cargos_own.any(|arg| arg.starts_with("-p") || arg.starts_with("--package") || arg == "--workspace")
}

//! `cargo xtask test`: all tests, with what they need started before and stopped after.

use std::process::{Command, ExitStatus};

use anyhow::Result;

use crate::cargo::{cargo, status, succeed};
use crate::emulator::Emulator;

/// Tells the tests where the emulator listens.
const ENDPOINT: &str = "TICKOVER_TEST_ENDPOINT";

/// What could lead the tests to a real account.
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

/// What keeps them at the emulator, whatever the machine is set up for.
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

/// Builds, then runs `cargo test ARGS` beside a fresh emulator. Returns how the tests ended.
pub(crate) fn run(args: &[String]) -> Result<ExitStatus> {
    // Tests start our binaries as real processes, and cargo builds only those of the packages it
    // tests. Built in one go with the tests, the dependencies get the same features and are built once.
    succeed(&mut cargo(&["build", "--workspace", "--bins", "--tests", "--locked"]))?;

    let emulator = Emulator::start()?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    run_at(&emulator.endpoint(), args)
}

/// Runs `cargo test ARGS` against an emulator that is there. Returns how the tests ended.
pub(crate) fn run_at(endpoint: &str, args: &[String]) -> Result<ExitStatus> {
    let mut tests = cargo(&["test", "--locked", "--no-fail-fast"]);
    if !chooses_packages(args) {
        tests.arg("--workspace");
    }
    status(away_from_aws(&mut tests).env(ENDPOINT, endpoint).args(args))
}

/// Leads a command to this emulator, and away from any real account.
pub(crate) fn at_emulator<'a>(command: &'a mut Command, emulator: &Emulator) -> &'a mut Command {
    away_from_aws(command).env(ENDPOINT, emulator.endpoint())
}

/// Keeps a command, and what it starts, from any real account.
pub(crate) fn away_from_aws(command: &mut Command) -> &mut Command {
    for name in REAL_AWS {
        command.env_remove(name);
    }
    command.envs(DUMMY_AWS.iter().copied())
}

/// Cargo lets `--workspace` win over `-p`, and refuses it twice.
fn chooses_packages(args: &[String]) -> bool {
    let mut cargos_own = args.iter().take_while(|arg| *arg != "--");
    cargos_own.any(|arg| arg.starts_with("-p") || arg.starts_with("--package") || arg == "--workspace")
}

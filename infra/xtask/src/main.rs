//! The one automation of this repository, started as `cargo xtask COMMAND`.
//!
//! It needs Rust and Python 3 and nothing else, and runs the same on a laptop and in continuous
//! integration. It must never hold logic of Tickover itself: it only builds, checks and starts things.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool reports to its terminal")]

mod bench;
mod build;
mod cargo;
mod ci;
mod core_purity;
mod deny;
mod e2e;
mod emulator;
mod guide;
mod lint;
mod localstack;
mod measure;
mod python;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds, checks and tests Tickover")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start an AWS emulator of our own, run all tests against it, stop it again
    Test {
        /// Passed on to `cargo test`, such as `-p tickover-core` or `some_name -- --nocapture`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Everything that continuous integration checks, in its order
    Ci,
    /// Build the functions as they are deployed, into `target/functions`
    Build {
        /// What they will run on
        #[arg(long, value_enum, default_value = "arm64")]
        architecture: build::Architecture,
    },
    /// Deploy the template into an emulator of our own, test it as a whole, delete it again
    E2e {
        /// Passed on to the tests, such as a part of their names
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// An emulator that stays on port 4566, with the table and the queues that a deployment has
    Localstack {
        #[command(subcommand)]
        what: Localstack,
    },
    /// The infrastructure's template, as SAM and cfn-lint see it
    Lint,
    /// The house rules that no compiler knows
    Tidy,
    /// Run Tickover against every fault there is, seed by seed, and check what must hold
    Sim {
        /// `--seeds N`, `--seed S` to replay one step by step, `--bug NAME`, `--bugs` to list them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Measure the functions as they are deployed: sizes, cold starts, memory
    MeasureFunctions,
    /// Measure, and print one JSON line a figure; the figures of time take about seven minutes
    Bench {
        /// Only those with this in their names
        name: Option<String>,
    },
}

#[derive(Subcommand)]
enum Localstack {
    /// Start it unless it is there, make what is missing, and say how to use it
    Up,
    /// End it, with all that is in it
    Down,
    /// Whether the bootstrap does its work, as a program and as the hook of `LocalStack`, in an emulator of its own
    Check,
    /// Run all tests against it
    Test {
        /// Passed on to `cargo test`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The simulation, whose arguments are its own.
fn sim(args: &[String]) -> Result<ExitCode> {
    // A replay is read, not waited for: it isn't worth an optimised build.
    let profile = if args.iter().any(|arg| arg == "--seed") { "dev" } else { "measure" };
    let mut sim = cargo::cargo(&["run", "--quiet", "--locked", "--package", "tickover-tests"]);
    sim.args(["--profile", profile, "--bin", "sim", "--"]).args(args);
    Ok(cargo::exit_code(cargo::status(&mut sim)?))
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Test { args } => return Ok(cargo::exit_code(test::run(&args)?)),
        Command::Ci => ci::run()?,
        Command::Build { architecture } => {
            println!("{}", build::run(architecture)?.display());
        }
        Command::E2e { args } => return Ok(cargo::exit_code(e2e::run(&args)?)),
        Command::Localstack { what: Localstack::Up } => localstack::up()?,
        Command::Localstack { what: Localstack::Down } => localstack::down()?,
        Command::Localstack { what: Localstack::Check } => localstack::check()?,
        Command::Localstack { what: Localstack::Test { args } } => {
            return Ok(cargo::exit_code(localstack::tests(&args)?));
        }
        Command::Lint => lint::run()?,
        Command::Tidy => tidy::run()?,
        Command::Sim { args } => return sim(&args),
        Command::MeasureFunctions => measure::run()?,
        Command::Bench { name } => return Ok(cargo::exit_code(bench::run(name.as_deref())?)),
    }
    Ok(ExitCode::SUCCESS)
}

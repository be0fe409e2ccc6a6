//! The one automation of this repository, started as `cargo xtask COMMAND`.
//!
//! It needs Rust and Python 3 and nothing else, and runs the same on a laptop and in continuous
//! integration. It must never hold logic of Tickover itself: it only builds, checks and starts things.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool reports to its terminal")]

mod bench;
mod cargo;
mod ci;
mod core_purity;
mod emulator;
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
    /// The house rules that no compiler knows
    Tidy,
    /// Run Tickover against every fault there is, seed by seed, and check what must hold
    Sim {
        /// `--seeds N`, `--seed S` to replay one step by step, `--bug NAME`, `--bugs` to list them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Measure, and print one JSON line a figure; the figures of time take about seven minutes
    Bench {
        /// Only those with this in their names
        name: Option<String>,
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
    let profile = if args.iter().any(|arg| arg == "--seed") { "dev" } else { "release" };
    let mut sim = cargo::cargo(&["run", "--quiet", "--locked", "--package", "tickover-tests"]);
    sim.args(["--profile", profile, "--bin", "sim", "--"]).args(args);
    Ok(cargo::exit_code(cargo::status(&mut sim)?))
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Test { args } => return Ok(cargo::exit_code(test::run(&args)?)),
        Command::Ci => ci::run()?,
        Command::Tidy => tidy::run()?,
        Command::Sim { args } => return sim(&args),
        Command::Bench { name } => return Ok(cargo::exit_code(bench::run(name.as_deref())?)),
    }
    Ok(ExitCode::SUCCESS)
}

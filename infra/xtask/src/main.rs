//! The automation of this repository: `cargo xtask COMMAND`.
//!
//! It needs only Rust and Python 3, Node for the tests, and Chromium for those of the dashboard. It
//! runs the same on a laptop and in continuous integration. It must contain no logic of Tickover itself: it only builds,
//! checks and starts programs.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool reports to its terminal")]

mod bench;
mod browser;
mod build;
mod cargo;
mod ci;
mod deny;
mod dist;
mod e2e;
mod emulator;
mod guide;
mod judge;
mod lint;
mod localstack;
mod measure;
mod npm;
mod package;
mod project;
mod python;
mod seconds;
mod stacks;
mod test;
mod tidy;
mod workers;

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
    /// Run all tests with a new AWS emulator
    Test {
        /// Passed to `cargo test`, such as `-p tickover-core` or `some_name -- --nocapture`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run all steps of continuous integration, in order
    Ci {
        /// Begin with this step, such as `test`: those before it have passed already
        #[arg(long, value_name = "STEP")]
        from: Option<String>,
        /// Run only this step; may be given several times
        #[arg(long, value_name = "STEP", conflicts_with = "from")]
        only: Vec<String>,
    },
    /// Build the functions for deployment, into `target/functions`
    Build {
        /// The processor architecture that they will run on
        #[arg(long, value_enum, default_value = "arm64")]
        architecture: build::Architecture,
        /// Also the function that does nothing, with which `measure-functions` compares the others
        #[arg(long)]
        with_empty: bool,
    },
    /// Make a release's archives, templates and checksums, in `target/dist/VERSION`
    Dist(dist::DistArgs),
    /// Deploy a core, a worker and queues into a new emulator or an account, run the end-to-end tests, delete the stacks
    E2e(e2e::E2eArgs),
    /// Deploy the core and its workers into a new emulator, unbuilt, update them, delete them
    Stacks,
    /// Run a persistent emulator on port 4566, with the table and the queues of a deployment
    Localstack {
        #[command(subcommand)]
        what: Localstack,
    },
    /// Install and compile the example workers in Python and TypeScript, and run their tests
    Workers {
        /// Passed to the tests, such as a part of their names
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run the dashboard's tests in a real browser
    Browser {
        /// Passed to the tests, such as a part of their names
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Take the dashboard's pictures for the README again
    Screenshots,
    /// Check the infrastructure's templates with cfn-lint and against the code, the emulators and the guides
    Lint,
    /// Check this repository's own rules that no compiler checks
    Tidy,
    /// Pack the crates for the registry, and compile and document what was packed
    Package,
    /// Run the simulation with all kinds of faults, seed by seed, and check the invariants
    Sim {
        /// `--seeds N`, `--seed S` to replay one step by step, `--bug NAME`, `--bugs` to list them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Measure the functions as they are deployed: sizes, cold starts, memory
    MeasureFunctions,
    /// Run the benchmarks and print one JSON line for each figure; the timings take about seven minutes
    Bench {
        /// Only benchmarks whose names contain this
        name: Option<String>,
    },
}

#[derive(Subcommand)]
enum Localstack {
    /// Start it unless it runs, create what is missing, and print how to use it
    Up,
    /// Stop it; its state is lost
    Down,
    /// Check the bootstrap as a program and as `LocalStack`'s hook, in a new emulator
    Check,
    /// Run all tests with it
    Test {
        /// Passed to `cargo test`
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

/// Runs the simulation, which parses its arguments itself.
fn sim(args: &[String]) -> Result<ExitCode> {
    // A replay prints a trace for people to read. It doesn't need an optimised build.
    let profile = if args.iter().any(|arg| arg == "--seed") { "dev" } else { "measure" };
    let mut sim = cargo::cargo(&["run", "--quiet", "--locked", "--package", "tickover-sim"]);
    sim.args(["--profile", profile, "--bin", "sim", "--"]).args(args);
    Ok(cargo::exit_code(cargo::status(&mut sim)?))
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Test { args } => test::run(&args)?,
        Command::Ci { from, only } if only.is_empty() => ci::run(from.as_deref())?,
        Command::Ci { only, .. } => ci::only(&only)?,
        Command::Build { architecture, with_empty } => {
            let build = if with_empty { build::with_empty } else { build::run };
            println!("{}", build(architecture)?.display());
        }
        Command::Dist(args) => dist::run(&args)?,
        Command::E2e(args) => return Ok(cargo::exit_code(e2e::run(&args)?)),
        Command::Stacks => stacks::run()?,
        Command::Workers { args } => workers::run(&args)?,
        Command::Browser { args } => browser::run(&args)?,
        Command::Screenshots => browser::screenshots()?,
        Command::Localstack { what: Localstack::Up } => localstack::up()?,
        Command::Localstack { what: Localstack::Down } => localstack::down()?,
        Command::Localstack { what: Localstack::Check } => localstack::check()?,
        Command::Localstack { what: Localstack::Test { args } } => localstack::run_tests_at_emulator(&args)?,
        Command::Lint => lint::run()?,
        Command::Tidy => tidy::run()?,
        Command::Package => package::run()?,
        Command::Sim { args } => return sim(&args),
        Command::MeasureFunctions => measure::run()?,
        Command::Bench { name } => bench::run(name.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

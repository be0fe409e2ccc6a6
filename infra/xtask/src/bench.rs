//! `cargo xtask bench`: the benchmarks, with an emulator beside those that need one.

use std::process::ExitStatus;

use anyhow::Result;

use crate::cargo::{cargo, status, succeed};
use crate::emulator::Emulator;
use crate::test::at_emulator;

/// The benchmark that talks to a queue of AWS.
const AT_EMULATOR: &str = "lateness-sqs";

/// Builds, then runs those benchmarks whose names contain this one, or all of them. Returns how they ended.
pub(crate) fn run(name: Option<&str>) -> Result<ExitStatus> {
    let package = ["--profile", "measure", "--locked", "--package", "tickover-tests", "--bin", "bench"];
    // Nothing else is to use the processor while something is measured.
    succeed(cargo(&["build"]).args(package))?;
    let mut bench = cargo(&["run", "--quiet"]);
    bench.args(package).arg("--").args(name);
    if name.is_none_or(|name| AT_EMULATOR.contains(name)) {
        let emulator = Emulator::start()?;
        return status(at_emulator(&mut bench, &emulator));
    }
    status(&mut bench)
}

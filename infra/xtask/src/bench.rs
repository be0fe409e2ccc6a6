//! `cargo xtask bench`: runs the benchmarks, and starts an emulator for those that need one.

use anyhow::Result;

use crate::cargo::{cargo, succeed};
use crate::emulator::Emulator;
use crate::test::at_emulator;

/// The benchmark that needs an SQS queue.
const AT_EMULATOR: &str = "lateness-sqs";

/// Builds, then runs the benchmarks whose names contain `name`, or all of them.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    let package = ["--profile", "measure", "--locked", "--package", "tickover-tests", "--bin", "bench"];
    // Built first: nothing else should use the processor during a measurement.
    succeed(cargo(&["build"]).args(package))?;
    let mut bench = cargo(&["run", "--quiet"]);
    bench.args(package).arg("--").args(name);
    if name.is_none_or(|name| AT_EMULATOR.contains(name)) {
        let emulator = Emulator::start()?;
        return succeed(at_emulator(&mut bench, &emulator.endpoint()));
    }
    succeed(&mut bench)
}

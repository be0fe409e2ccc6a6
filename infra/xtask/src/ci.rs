//! What continuous integration checks. There is no second list of steps anywhere.

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, succeed};
use crate::{core_purity, deny, e2e, lint, localstack, measure, test, tidy};

/// One check, by the name under which it is announced.
struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// From the cheapest to the dearest, so that a slip is told soon.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: || succeed(&mut cargo(&["fmt", "--all", "--check"])) },
    Step { name: "tidy", run: tidy::run },
    Step { name: "core", run: core_purity::run },
    Step { name: "deny", run: deny::run },
    Step { name: "lint", run: lint::run },
    Step { name: "localstack", run: localstack::check },
    Step { name: "clippy", run: clippy },
    Step { name: "docs", run: docs },
    Step { name: "test", run: tests },
    Step { name: "example", run: example },
    Step { name: "e2e", run: end_to_end },
    Step { name: "functions", run: measure::run },
    Step { name: "demo", run: || succeed(&mut cargo(&["run", "--locked", "--", "demo"])) },
];

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    let begun = Instant::now();
    for (number, Step { name, run }) in STEPS.iter().enumerate() {
        println!("==> ci {}/{}: {name}", number + 1, STEPS.len());
        let step_begun = Instant::now();
        run().with_context(|| format!("ci stopped: {name} failed after {:.1} s", seconds(step_begun)))?;
        println!("==> ci {name}: ok in {:.1} s", seconds(step_begun));
    }
    println!("==> ci: all {} steps ok in {:.1} s", STEPS.len(), seconds(begun));
    Ok(())
}

fn clippy() -> Result<()> {
    succeed(&mut cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))?;
    // Not among all targets, because `cargo test` must leave it alone.
    succeed(&mut cargo(&[
        "clippy",
        "--workspace",
        "--test",
        "end_to_end",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

fn docs() -> Result<()> {
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// A crate of a user's own is outside of the workspace, and is built as a user builds it.
fn example() -> Result<()> {
    let manifest = ["--manifest-path", "infra/examples/orders/Cargo.toml"];
    succeed(cargo(&["fmt", "--check"]).args(manifest))?;
    // What it shares with the workspace has been built there, if it is built alike.
    let alike = ["--config", "profile.dev.package.libsqlite3-sys.opt-level=3"];
    let mut test = cargo(&["test", "--locked", "--target-dir", "target"]);
    succeed(test.args(alike).args(manifest).env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"))
}

fn tests() -> Result<()> {
    let status = test::run(&[])?;
    if !status.success() {
        bail!("cargo test ended with {status}");
    }
    Ok(())
}

fn end_to_end() -> Result<()> {
    let status = e2e::run(&[])?;
    if !status.success() {
        bail!("the tests of the deployed stack ended with {status}");
    }
    Ok(())
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

//! The steps of continuous integration. There is no other list of them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{cargo, succeed, target_dir};
use crate::{
    browser, core_purity, deny, e2e, lint, localstack, measure, package, project, stacks, test, tidy, workers,
};

/// One check, with the name that is printed.
struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// The cheapest steps come first, so that mistakes are found early.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: || succeed(&mut cargo(&["fmt", "--all", "--check"])) },
    Step { name: "tidy", run: tidy::run },
    Step { name: "core", run: core_purity::run },
    Step { name: "deny", run: deny::run },
    Step { name: "lint", run: lint::run },
    Step { name: "localstack", run: localstack::check },
    Step { name: "stacks", run: stacks::run },
    Step { name: "clippy", run: clippy },
    Step { name: "docs", run: docs },
    Step { name: "test", run: tests },
    Step { name: "package", run: package::run },
    Step { name: "example", run: example },
    Step { name: "workers", run: example_workers },
    Step { name: "browser", run: in_browser },
    Step { name: "e2e", run: end_to_end },
    Step { name: "functions", run: measure::run },
    Step { name: "demo", run: demo },
];

/// Runs the steps in order, from the named one on, and stops at the first that fails.
pub(crate) fn run(from: Option<&str>) -> Result<()> {
    let started_at = Instant::now();
    let first = STEPS.iter().position(|step| from.is_none_or(|from| step.name == from));
    let first = first.with_context(|| {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        format!("there is no such step, but {}", names.join(", "))
    })?;
    for (number, Step { name, run }) in STEPS.iter().enumerate().skip(first) {
        println!("==> ci {}/{}: {name}", number + 1, STEPS.len());
        let step_started_at = Instant::now();
        run()
            .with_context(|| format!("ci stopped: {name} failed after {:.1} s", seconds(step_started_at)))?;
        println!("==> ci {name}: ok in {:.1} s", seconds(step_started_at));
    }
    let target = target_dir()?;
    println!(
        "==> ci: all {} steps ok in {:.1} s; {} holds {} MB",
        STEPS.len() - first,
        seconds(started_at),
        target.display(),
        size(&target)? / 1_000_000
    );
    Ok(())
}

/// The bytes of all files in a folder. A file with several names counts once, if all are there.
fn size(folder: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))? {
        let entry = entry?;
        // Links aren't followed.
        let metadata = entry.metadata()?;
        size +=
            if metadata.is_dir() { self::size(&entry.path())? } else { metadata.len() / metadata.nlink() };
    }
    Ok(size)
}

fn clippy() -> Result<()> {
    let all = ["clippy", "--workspace", "--all-targets", "--locked"];
    succeed(cargo(&all).args(test::FEATURES).args(["--", "-D", "warnings"]))?;
    // Separate from `--all-targets`, because `cargo test` must not run them.
    let apart = [
        "clippy",
        "--workspace",
        "--test",
        "end_to_end",
        "--test",
        "workers",
        "--test",
        "browser",
        "--locked",
    ];
    succeed(cargo(&apart).args(test::FEATURES).args(["--", "-D", "warnings"]))
}

/// The demo of the README, and that the tool it builds says how to get the AWS parts that it lacks.
fn demo() -> Result<()> {
    succeed(&mut cargo(&["run", "--locked", "--", "demo"]))?;
    let tool = target_dir()?.join("debug/tickover");
    let refused = Command::new(tool).args(["--stack", "tickover", "list"]).output()?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(
        !refused.status.success() && said.contains("cargo install"),
        "`--stack` without AWS parts: {said}"
    );
    Ok(())
}

fn docs() -> Result<()> {
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    succeed(doc.args(test::FEATURES).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The example crate, and a project of `tickover new`. Both are outside of the workspace, and are built as a user would
/// build them.
fn example() -> Result<()> {
    let manifest = ["--manifest-path", "infra/examples/orders/Cargo.toml"];
    succeed(cargo(&["fmt", "--check"]).args(manifest))?;
    let mut test = cargo(&["test", "--locked", "--target-dir"]);
    succeed(project::alike(test.arg(target_dir()?).args(manifest)))?;
    project::run()
}

fn tests() -> Result<()> {
    let status = test::run(&[])?;
    if !status.success() {
        bail!("cargo test ended with {status}");
    }
    Ok(())
}

fn example_workers() -> Result<()> {
    let status = workers::run(&[])?;
    if !status.success() {
        bail!("the tests of the example workers ended with {status}");
    }
    Ok(())
}

fn in_browser() -> Result<()> {
    let status = browser::run(&[])?;
    if !status.success() {
        bail!("the tests of the dashboard ended with {status}");
    }
    Ok(())
}

fn end_to_end() -> Result<()> {
    let status = e2e::run(&e2e::E2eArgs::default())?;
    if !status.success() {
        bail!("the tests of the deployed stack ended with {status}");
    }
    Ok(())
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

//! The steps of continuous integration. There is no other list of them.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::build::{self, Architecture};
use crate::cargo::{cargo, succeed, target_dir, write};
use crate::seconds::{Stopwatch, Took};
use crate::{browser, deny, e2e, lint, localstack, measure, package, project, stacks, test, tidy, workers};

/// One check, with the name that is printed.
struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// The cheapest steps come first, so that mistakes are found early.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: || succeed(&mut cargo(&["fmt", "--all", "--check"])) },
    Step { name: "tidy", run: tidy::run },
    Step { name: "deny", run: deny::run },
    Step { name: "lint", run: lint::run },
    Step { name: "localstack", run: localstack::check },
    Step { name: "stacks", run: stacks::run },
    Step { name: "clippy", run: clippy },
    Step { name: "docs", run: docs },
    Step { name: "test", run: || test::run(&[]) },
    Step { name: "package", run: package::run },
    Step { name: "example", run: example },
    Step { name: "workers", run: || workers::run(&[]) },
    Step { name: "browser", run: || browser::run(&[]) },
    Step { name: BUILD, run: || build::with_empty(Architecture::here()).map(drop) },
    Step { name: "e2e", run: end_to_end },
    Step { name: "functions", run: measure::run },
    Step { name: "demo", run: demo },
];

/// The step that builds the functions. It has a head start.
const BUILD: &str = "build";

/// Runs the steps in order, from the named one on, and stops at the first that fails. Prints how long each took.
pub(crate) fn run(from: Option<&str>) -> Result<()> {
    let first = STEPS.iter().position(|step| from.is_none_or(|from| step.name == from));
    let first = first.with_context(|| {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        format!("there is no such step, but {}", names.join(", "))
    })?;
    let build = STEPS.iter().position(|step| step.name == BUILD);
    let mut head_start = if build > Some(first) { Some(HeadStart::begin()?) } else { None };
    let all = Stopwatch::start();
    let mut rows = vec![];
    let outcome = STEPS.iter().enumerate().skip(first).try_for_each(|(number, step)| {
        println!("==> ci {}/{}: {}", number + 1, STEPS.len(), step.name);
        let (took, outcome) = step.run(head_start.as_mut().filter(|_| step.name == BUILD));
        rows.push(took.row(step.name));
        outcome
    });
    drop(head_start);
    println!("==> ci: seconds of each step, and of its processors\n{}", rows.join("\n"));
    println!("{}", all.took().row("all"));
    outcome?;
    println!("==> ci: all {} steps ok in {:.1} s", STEPS.len() - first, all.took().clock.as_secs_f64());
    Ok(())
}

impl Step {
    fn run(&self, begun: Option<&mut HeadStart>) -> (Took, Result<()>) {
        let watch = Stopwatch::start();
        let outcome = begun.map_or(Ok(()), HeadStart::end).and_then(|()| (self.run)());
        let (name, took) = (self.name, watch.took());
        let seconds = took.clock.as_secs_f64();
        if outcome.is_ok() {
            println!("==> ci {name}: ok in {seconds:.1} s");
        }
        (took, outcome.with_context(|| format!("ci stopped: {name} failed after {seconds:.1} s")))
    }
}

/// Builds the functions beside the first steps, with what these leave of the processors: to link a function takes a minute
/// of one core. The step itself waits for its end: cargo locks its folder, but cargo-lambda moves the programs out of it
/// later, and two at once take them from each other. Then it does what is left, and fails if this has failed, for the same
/// reason.
struct HeadStart(Child);

impl HeadStart {
    fn begin() -> Result<Self> {
        let log = target_dir()?.join("functions.log");
        write(&log, "")?;
        let log = File::create(log)?;
        let mut build = Command::new("nice");
        build.args(["-n", "10"]).arg(std::env::current_exe()?);
        build.args(["build", "--with-empty", "--architecture", Architecture::here().name()]);
        let child = build.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        Ok(Self(child.context("could not start `nice`")?))
    }

    /// Waits until it has ended, in whatever way.
    fn end(&mut self) -> Result<()> {
        self.0.wait().map(drop).context("could not wait for the build of the functions")
    }
}

impl Drop for HeadStart {
    /// Stops it, if it hasn't ended. A call of cargo that has begun goes on to its end.
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
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

fn end_to_end() -> Result<()> {
    let status = e2e::run(&e2e::E2eArgs::default())?;
    if !status.success() {
        bail!("the tests of the deployed stack ended with {status}");
    }
    Ok(())
}

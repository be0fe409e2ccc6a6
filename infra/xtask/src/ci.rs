//! The steps of continuous integration. There is no other list of them.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::cargo::{CLIPPY, cargo, succeed, target_dir, write};
use crate::seconds::Stopwatch;
use crate::{browser, deny, e2e, lint, localstack, package, project, stacks, test, tidy, workers};

/// One check, with the name that is printed.
struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// Steps that run one after the other.
type Lane = &'static [Step];

/// The stages in their order: the cheapest come first, so that mistakes are found early. The lanes of a stage run at the same
/// time: where one waits for an emulator, the other one has both processors.
const STAGES: &[&[Lane]] = &[
    &[&[
        Step { name: "fmt", run: || succeed(&mut cargo(&["fmt", "--all", "--check"])) },
        Step { name: "tidy", run: tidy::run },
        Step { name: "deny", run: deny::run },
    ]],
    &[
        &[Step { name: "test", run: || test::run(&[]) }, Step { name: "example", run: example }],
        // They install tools, and wait for emulators.
        &[
            Step { name: "lint", run: lint::run },
            Step { name: "localstack", run: localstack::check },
            Step { name: "stacks", run: stacks::run },
            Step { name: "e2e", run: end_to_end },
            Step { name: "workers", run: || workers::run(&[]) },
            Step { name: "browser", run: || browser::run(&[]) },
        ],
    ],
    // It replaces the tool that all others use.
    &[&[Step { name: "package", run: package::run }]],
];

/// The functions that CI deploys are built in the profile of a release, but not optimized. Optimized ones take half an hour
/// of a processor, most of it for the linker. `cargo xtask measure-functions` measures those, before a release.
const NOT_OPTIMIZED: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256"),
];

/// Runs the stages in order, from the named step's on, and stops after the first that fails. Prints how long each stage took;
/// its steps are in the lanes' own output.
pub(crate) fn run(from: Option<&str>) -> Result<()> {
    let first = from.map_or(Ok(0), |from| found(from).map(|(stage, _)| stage))?;
    // Asked for now: cargo may put the same program, built with other features, in its place.
    let program = std::env::current_exe()?;
    let all = Stopwatch::start();
    let mut rows = vec![];
    let outcome = STAGES.iter().skip(first).try_for_each(|stage| {
        let watch = Stopwatch::start();
        let outcome = at_once(stage, &program);
        let lanes: Vec<String> = stage.iter().map(|lane| names(lane)).collect();
        rows.push(watch.took().row(&lanes.join(" | ")));
        outcome
    });
    println!("{}\n{}", table(&rows), all.took().row("all"));
    outcome?;
    println!("==> ci: all steps ok in {:.1} s", all.took().clock.as_secs_f64());
    Ok(())
}

/// Runs these steps alone, one after the other.
pub(crate) fn only(named: &[String]) -> Result<()> {
    let steps: Vec<&Step> = named.iter().map(|name| Ok(found(name)?.1)).collect::<Result<_>>()?;
    let mut rows = vec![];
    let outcome = in_order(steps.into_iter(), &mut rows);
    println!("{}", table(&rows));
    outcome
}

/// The step of this name, and the number of its stage.
fn found(name: &str) -> Result<(usize, &'static Step)> {
    let all = || {
        STAGES
            .iter()
            .enumerate()
            .flat_map(|(number, lanes)| lanes.iter().copied().flatten().map(move |step| (number, step)))
    };
    all().find(|(_, step)| step.name == name).with_context(|| {
        let names: Vec<&str> = all().map(|(_, step)| step.name).collect();
        format!("there is no step `{name}`, but {}", names.join(", "))
    })
}

fn names(lane: Lane) -> String {
    lane.iter().map(|step| step.name).collect::<Vec<_>>().join(", ")
}

fn table(rows: &[String]) -> String {
    format!("==> ci: seconds of each step, and of its processors\n{}", rows.join("\n"))
}

/// Runs steps in this process, and adds a row for each.
fn in_order<'a>(mut steps: impl Iterator<Item = &'a Step>, rows: &mut Vec<String>) -> Result<()> {
    steps.try_for_each(|step| {
        println!("==> ci: {}", step.name);
        let watch = Stopwatch::start();
        let outcome = (step.run)();
        let took = watch.took();
        rows.push(took.row(step.name));
        let seconds = took.clock.as_secs_f64();
        outcome.with_context(|| format!("ci stopped: {} failed after {seconds:.1} s", step.name))?;
        println!("==> ci {}: ok in {seconds:.1} s", step.name);
        Ok(())
    })
}

/// Runs each lane in a process of its own, to its end, whether another one fails or not.
fn at_once(lanes: &'static [Lane], program: &Path) -> Result<()> {
    let ended: Vec<Result<()>> = thread::scope(|scope| {
        let lanes: Vec<_> = lanes.iter().map(|lane| scope.spawn(|| apart(lane, program))).collect();
        let panicked = |_| Err(anyhow!("the thread of a lane panicked"));
        lanes.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect()
    });
    ended.into_iter().collect()
}

/// Runs a lane in a process of its own. Its output is printed as a whole when it has ended.
fn apart(lane: Lane, program: &Path) -> Result<()> {
    let file = target_dir()?.join("ci").join(lane[0].name);
    write(&file, "")?;
    let into = File::create(&file)?;
    println!("==> ci: {}, with what they print in {}", names(lane), file.display());
    let mut steps = Command::new(program);
    steps.arg("ci").args(lane.iter().flat_map(|step| ["--only", step.name])).envs(NOT_OPTIMIZED);
    // `cargo clippy` would compile everything once more.
    steps.envs(CLIPPY);
    let ended = steps.stdin(Stdio::null()).stdout(into.try_clone()?).stderr(into).status()?;
    println!("{}", String::from_utf8_lossy(&fs::read(&file)?));
    ensure!(ended.success(), "ci stopped: {} ended with {ended}", names(lane));
    Ok(())
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_step_has_a_name_of_its_own_by_which_it_is_found() {
        let all: Vec<&str> =
            STAGES.iter().copied().flatten().copied().flatten().map(|step| step.name).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for name in &all {
            assert_eq!(found(name).unwrap().1.name, *name);
        }
        let unknown = found("tests").err().unwrap().to_string();
        assert!(
            unknown.starts_with("there is no step `tests`, but fmt, tidy") && unknown.ends_with("package"),
            "{unknown}"
        );
        assert!(found("fmt").unwrap().0 < found("e2e").unwrap().0);
    }

    #[test]
    fn the_steps_after_one_that_fails_do_not_run_and_each_that_ran_has_a_row() {
        let steps = [
            Step { name: "good", run: || Ok(()) },
            Step { name: "bad", run: || bail!("why") },
            Step { name: "never", run: || panic!("it ran") },
        ];
        let mut rows = vec![];
        let failed = in_order(steps.iter(), &mut rows).unwrap_err();
        assert!(format!("{failed:#}").contains("bad failed after") && format!("{failed:#}").ends_with("why"));
        assert_eq!(rows.len(), 2);
    }
}

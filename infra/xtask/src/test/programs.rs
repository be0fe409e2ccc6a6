//! The workspace's test programs, two at a time.
//!
//! Cargo would run one after the other: while a program waits, or its last test runs alone, a core would be idle. What a
//! program prints is kept, and printed as a whole when it has ended.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::FEATURES;
use crate::cargo::{cargo, metadata, output, target_dir, without_cargos_own, write};
use crate::seconds;

const AT_ONCE: usize = 2;
/// The ones that take longest begin first, so that none of them is left alone at the end.
const FIRST: [&str; 3] = ["tickover-sim simulation", "tickover replay", "tickover-tests agreement"];
/// Longer than any of them takes, also beside other builds. What doesn't end by itself is stopped, so that its output says
/// which test it was.
const BOUND: Duration = Duration::from_mins(40);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const EXAMPLES: &str = "examples in the documentation";

/// A program that cargo has built, or the call of cargo that runs the documentation's examples.
struct Program {
    name: String,
    /// What cargo would print before it runs the program.
    announced: String,
    command: Command,
}

/// A program that has ended.
#[derive(Clone)]
struct Ended {
    name: String,
    took: Duration,
    succeeded: bool,
}

/// Runs all of them, each command configured by this, and prints how long each took. Fails at the end if one has failed.
pub(super) fn run(configure: &impl Fn(&mut Command)) -> Result<()> {
    let started_at = Instant::now();
    let ended = run_all(all(configure)?, &target_dir()?.join("test-output"), BOUND)?;
    print!("{}", table(&ended, started_at.elapsed()));
    failed(&ended)
}

/// Runs each to its end or for as long as this, whether others fail or not. The folder gets what they print.
fn run_all(programs: VecDeque<Program>, folder: &Path, bound: Duration) -> Result<Vec<Ended>> {
    let queue = Mutex::new(programs);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        let mut ended = vec![];
        while let Some(program) = next() {
            ended.push(program.run(folder, bound)?);
        }
        Ok(ended)
    };
    let ended: Result<Vec<_>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let panicked = |_| Err(anyhow!("the thread of a test program panicked"));
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(panicked)).collect()
    });
    Ok(ended?.concat())
}

/// An error that names the programs that failed, if there are any.
fn failed(ended: &[Ended]) -> Result<()> {
    let failed: Vec<&str> = ended.iter().filter(|one| !one.succeeded).map(|one| &*one.name).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// All programs in the order in which they begin.
fn all(configure: &impl Fn(&mut Command)) -> Result<VecDeque<Program>> {
    let build =
        ["test", "--no-run", "--locked", "--workspace", "--message-format", "json-render-diagnostics"];
    let messages = output(cargo(&build).args(FEATURES))?;
    let packages = metadata()?;
    let mut programs = VecDeque::new();
    for message in messages.lines() {
        let message: Value = serde_json::from_str(message).context("cargo wrote no JSON")?;
        if let Some(mut program) = Program::built(&message, &packages)? {
            configure(&mut program.command);
            programs.push_back(program);
        }
    }
    let mut examples = cargo(&["test", "--doc", "--locked", "--workspace", "--no-fail-fast"]);
    configure(examples.args(FEATURES));
    programs.push_back(Program {
        name: EXAMPLES.to_owned(),
        announced: EXAMPLES.to_owned(),
        command: examples,
    });
    in_order(programs)
}

fn in_order(mut programs: VecDeque<Program>) -> Result<VecDeque<Program>> {
    for first in FIRST.iter().rev() {
        let found = programs.iter().position(|program| program.name == *first);
        let program = found.and_then(|at| programs.remove(at));
        programs.push_front(program.with_context(|| format!("there is no test program {first}"))?);
    }
    Ok(programs)
}

impl Program {
    /// The test program in a message of cargo, if it is about one.
    fn built(message: &Value, metadata: &Value) -> Result<Option<Self>> {
        let is_test = message["profile"]["test"] == true;
        let (true, Some(path)) = (is_test, message["executable"].as_str()) else { return Ok(None) };
        let manifest = message["manifest_path"].as_str().context("a program without a manifest")?;
        let folder = Path::new(manifest).parent().context("a manifest without a folder")?;
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let package = packages.iter().find(|package| package["manifest_path"] == manifest);
        let package = package.and_then(|one| one["name"].as_str()).context("a program without a package")?;
        let target = &message["target"];
        let source = target["src_path"].as_str().context("a program without a source")?;
        let source = Path::new(source).strip_prefix(folder).unwrap_or(Path::new(source)).display();
        let (name, what) = match (target["name"].as_str(), target["kind"][0].as_str()) {
            (Some(name), Some("test")) => (format!("{package} {name}"), source.to_string()),
            (Some(name), Some(kind)) => (format!("{package} {kind} {name}"), format!("unittests {source}")),
            _ => bail!("a target without a name: {message}"),
        };
        let mut command = Command::new(path);
        // As cargo starts it.
        without_cargos_own(&mut command).current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        Ok(Some(Self { name, announced: format!("{what} ({path})"), command }))
    }

    /// Runs it to its end or for as long as this, then prints its output.
    fn run(mut self, folder: &Path, bound: Duration) -> Result<Ended> {
        println!("test: {} begins", self.name);
        let file = folder.join(self.name.replace(' ', "-"));
        write(&file, "")?;
        let into = File::create(&file)?;
        let started_at = Instant::now();
        self.command.stdin(Stdio::null()).stdout(into.try_clone()?).stderr(into);
        let child = self.command.spawn().with_context(|| format!("could not start {}", self.announced))?;
        let status = status_by(child, started_at + bound)?;
        let took = started_at.elapsed();
        let printed = fs::read(&file)?;
        let printed = String::from_utf8_lossy(&printed);
        // In one call, so that two programs' lines don't mix.
        println!("     Running {}\n{printed}test: {} ended with {status}", self.announced, self.name);
        Ok(Ended { name: self.name, took, succeeded: status.success() })
    }
}

/// How the process has ended. At this time it is killed.
fn status_by(mut child: Child, stop_at: Instant) -> Result<ExitStatus> {
    while Instant::now() < stop_at {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(LOOK_EVERY);
    }
    child.kill()?;
    Ok(child.wait()?)
}

/// The seconds of each program, slowest first.
fn table(ended: &[Ended], clock: Duration) -> String {
    let mut by_time: Vec<&Ended> = ended.iter().collect();
    by_time.sort_by_key(|one| std::cmp::Reverse(one.took));
    let sum = ended.iter().map(|one| one.took).sum();
    let mut table = "test: seconds of each test program, two at a time\n".to_owned();
    let rows = by_time.iter().map(|one| (one.took, one.name.as_str()));
    for (took, name) in rows.chain([(sum, "sum"), (clock, "by the clock")]) {
        table.push_str(&seconds::line(&[took], name));
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ended(name: &str, seconds: u64, succeeded: bool) -> Ended {
        Ended { name: name.to_owned(), took: Duration::from_secs(seconds), succeeded }
    }

    fn shell(name: &str, script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program { name: name.to_owned(), announced: name.to_owned(), command }
    }

    #[test]
    fn the_table_has_the_slowest_program_first_and_the_sum_last() {
        let table = table(&[ended("fast", 2, true), ended("slow", 30, false)], Duration::from_secs(31));
        let names: Vec<_> = table.lines().skip(1).map(|line| line.trim_start().to_owned()).collect();
        assert_eq!(names, ["30.0  slow", "2.0  fast", "32.0  sum", "31.0  by the clock"]);
    }

    #[test]
    fn a_program_is_found_in_cargos_messages_and_is_started_in_its_packages_folder() {
        let packages =
            json!({"packages": [{"name": "tickover-core", "manifest_path": "/r/core/Cargo.toml"}]});
        let built = |is_test: bool, kind: &str, source: &str| {
            let message = json!({
                "manifest_path": "/r/core/Cargo.toml", "executable": "/t/core-1", "profile": {"test": is_test},
                "target": {"name": "leases", "kind": [kind], "src_path": source},
            });
            Program::built(&message, &packages).unwrap()
        };
        let program = built(true, "test", "/r/core/tests/leases.rs").unwrap();
        assert_eq!(program.name, "tickover-core leases");
        assert_eq!(program.announced, "tests/leases.rs (/t/core-1)");
        assert_eq!(program.command.get_current_dir(), Some(Path::new("/r/core")));
        let program = built(true, "lib", "/r/core/src/lib.rs").unwrap();
        assert_eq!(program.name, "tickover-core lib leases");
        assert_eq!(program.announced, "unittests src/lib.rs (/t/core-1)");
        assert!(built(false, "bin", "/r/core/src/main.rs").is_none());
        assert!(Program::built(&json!({"reason": "build-finished"}), &packages).unwrap().is_none());
    }

    #[test]
    fn all_programs_run_though_one_fails_and_the_failed_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let second = folder.path().join("second");
        let script = format!("touch {}", second.display());
        let programs = [shell("first", "exit 3"), shell("second", &script)];
        let ended = run_all(programs.into(), folder.path(), BOUND).unwrap();
        assert!(second.exists());
        assert_eq!(failed(&ended).unwrap_err().to_string(), "failed: first");
        assert_eq!(fs::read_to_string(folder.path().join("first")).unwrap(), "");
        failed(&[]).unwrap();
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped_and_has_failed_and_what_it_printed_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let stays = [shell("first", "echo looking; kill -STOP $$")];
        let ended = run_all(stays.into(), folder.path(), Duration::from_secs(1)).unwrap();
        assert_eq!(failed(&ended).unwrap_err().to_string(), "failed: first");
        assert_eq!(fs::read_to_string(folder.path().join("first")).unwrap(), "looking\n");
    }

    #[test]
    fn the_longest_programs_begin_first_and_one_that_is_gone_is_noticed() {
        let named: VecDeque<_> =
            ["tickover-core lib", FIRST[2], FIRST[1], FIRST[0]].map(|name| shell(name, "")).into();
        let order: Vec<_> = in_order(named).unwrap().into_iter().map(|program| program.name).collect();
        assert_eq!(order, [FIRST[0], FIRST[1], FIRST[2], "tickover-core lib"]);
        let gone = in_order([shell(FIRST[0], "")].into()).err().unwrap();
        assert!(gone.to_string().contains(FIRST[2]), "{gone}");
    }
}

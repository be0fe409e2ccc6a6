//! `cargo xtask workers`: installs what the example workers need, compiles the one in TypeScript, and runs both against
//! real servers of this machine.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{cargo, output, root, status, target_dir};
use crate::python;
use crate::test::{self, FEATURES, away_from_aws};

const PYTHON: &str = "infra/examples/worker-python";
const TYPESCRIPT: &str = "infra/examples/worker-typescript";
/// The files that npm and the compiler need.
const SOURCES: &[&str] = &["package.json", "package-lock.json", "tsconfig.json", "main.ts", "worker.ts"];

/// The variables in which the tests find the Python with the libraries, and the folder of the compiled worker.
const PYTHON_VARIABLE: &str = "TICKOVER_TEST_PYTHON";
const TYPESCRIPT_VARIABLE: &str = "TICKOVER_TEST_TYPESCRIPT";

/// Builds everything, then runs `cargo test --test workers ARGS`. Returns the tests' exit status.
pub(crate) fn run(args: &[String]) -> Result<ExitStatus> {
    let target = target_dir()?;
    let requirements = root().join(PYTHON).join("requirements.txt");
    let python = python::install(&target.join("worker-python"), &requirements, "botocore")?;
    let typescript = target.join("worker-typescript");
    compile(&typescript)?;

    // The tests start `tickover dev`. As in `cargo xtask test`, the whole workspace is built with the same features.
    test::build()?;
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "workers", "--no-fail-fast"]);
    tests.args(FEATURES).arg("--");
    away_from_aws(&mut tests).env(PYTHON_VARIABLE, python).env(TYPESCRIPT_VARIABLE, typescript);
    status(tests.args(args))
}

/// Compiles a copy of the TypeScript example, so that the repository's folder stays clean.
fn compile(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    let stamp = folder.join("stamp");
    let lock = fs::read_to_string(root().join(TYPESCRIPT).join("package-lock.json"))?;
    for file in SOURCES {
        let source = root().join(TYPESCRIPT).join(file);
        fs::copy(&source, folder.join(file))
            .with_context(|| format!("could not copy {}", source.display()))?;
    }
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        println!("xtask: installing the packages of {TYPESCRIPT} into {}", folder.display());
        npm(folder, &["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--engine-strict"])?;
        fs::write(&stamp, lock)?;
    }
    // In strict mode, as tsconfig.json says.
    npm(folder, &["run", "build"])
}

fn npm(folder: &Path, args: &[&str]) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(args).current_dir(folder).stdin(Stdio::null());
    output(&mut npm).context("this needs Node 20 or newer with npm (https://nodejs.org)")?;
    Ok(())
}

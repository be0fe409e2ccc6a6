//! `cargo xtask workers`: installs what the example workers need, compiles the one in TypeScript and the client that is
//! generated from the `OpenAPI` document, and runs them against real servers of this machine.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{cargo, output, root, status, target_dir};
use crate::python;
use crate::test::{self, FEATURES, away_from_aws};

const PYTHON: &str = "infra/examples/worker-python";
/// What npm compiles: the folder with its lock file, and the files that it needs.
const TYPESCRIPT: (&str, &[&str]) = (
    "infra/examples/worker-typescript",
    &["package.json", "package-lock.json", "tsconfig.json", "main.ts", "worker.ts"],
);
const CLIENT: (&str, &[&str]) = (
    "tests/client",
    &["package.json", "package-lock.json", "tsconfig.json", "calls.ts", "../../shared/api/openapi.json"],
);

/// The variables in which the tests find the Python with the libraries, and the folders of what is compiled.
const PYTHON_VARIABLE: &str = "TICKOVER_TEST_PYTHON";
const TYPESCRIPT_VARIABLE: &str = "TICKOVER_TEST_TYPESCRIPT";
const CLIENT_VARIABLE: &str = "TICKOVER_TEST_CLIENT";

/// Builds everything, then runs `cargo test --test workers ARGS`. Returns the tests' exit status.
pub(crate) fn run(args: &[String]) -> Result<ExitStatus> {
    let target = target_dir()?;
    let requirements = root().join(PYTHON).join("requirements.txt");
    let python = python::install(&target.join("worker-python"), &requirements, "botocore")?;
    let (typescript, client) = (target.join("worker-typescript"), target.join("generated-client"));
    compile(&typescript, TYPESCRIPT)?;
    compile(&client, CLIENT)?;

    // The tests start `tickover dev`. As in `cargo xtask test`, the whole workspace is built with the same features.
    test::build()?;
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "workers", "--no-fail-fast"]);
    tests.args(FEATURES).arg("--");
    away_from_aws(&mut tests).env(PYTHON_VARIABLE, python).env(TYPESCRIPT_VARIABLE, typescript);
    tests.env(CLIENT_VARIABLE, client);
    status(tests.args(args))
}

/// Compiles a copy of these files, so that the repository's folders stay clean.
fn compile(folder: &Path, (from, sources): (&str, &[&str])) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    let stamp = folder.join("stamp");
    for file in sources {
        let source = root().join(from).join(file);
        let name = source.file_name().context("a file without a name")?;
        fs::copy(&source, folder.join(name))
            .with_context(|| format!("could not copy {}", source.display()))?;
    }
    let locked = fs::read_to_string(root().join(from).join("package-lock.json"))?;
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == locked) {
        println!("xtask: installing the packages of {from} into {}", folder.display());
        npm(folder, &["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--engine-strict"])?;
        fs::write(&stamp, locked)?;
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

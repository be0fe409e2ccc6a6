//! `cargo xtask workers`: installs what the example workers need, compiles the one in TypeScript and the client that is
//! generated from the `OpenAPI` document, and runs them against real servers of this machine.

use std::path::PathBuf;

use anyhow::Result;

use crate::cargo::{cargo, root, succeed, target_dir};
use crate::test::{self, FEATURES, away_from_aws};
use crate::{npm, python};

const PYTHON: &str = "infra/examples/worker-python";
/// What npm compiles: the folder with its lock file, a name, and the files that it needs.
const TYPESCRIPT: (&str, &str, &[&str]) =
    ("infra/examples/worker-typescript", "worker-typescript", &["tsconfig.json", "main.ts", "worker.ts"]);
const CLIENT: (&str, &str, &[&str]) =
    ("tests/client", "generated-client", &["tsconfig.json", "calls.ts", "../../shared/api/openapi.json"]);

/// The variables in which the tests find the Python with the libraries, and the folders of what is compiled.
const PYTHON_VARIABLE: &str = "TICKOVER_TEST_PYTHON";
const TYPESCRIPT_VARIABLE: &str = "TICKOVER_TEST_TYPESCRIPT";
const CLIENT_VARIABLE: &str = "TICKOVER_TEST_CLIENT";

/// Builds everything, then runs `cargo test --test workers ARGS`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let target = target_dir()?;
    let requirements = root().join(PYTHON).join("requirements.txt");
    let python = python::install(&target.join("worker-python"), &requirements, "botocore")?;
    let (typescript, client) = (compile(TYPESCRIPT)?, compile(CLIENT)?);

    // The tests start `tickover dev`. As in `cargo xtask test`, the whole workspace is built with the same features.
    test::build()?;
    let mut tests = cargo(&["test", "--locked", "--workspace", "--test", "workers", "--no-fail-fast"]);
    tests.args(FEATURES).arg("--");
    away_from_aws(&mut tests).env(PYTHON_VARIABLE, python).env(TYPESCRIPT_VARIABLE, typescript);
    tests.env(CLIENT_VARIABLE, client);
    succeed(tests.args(args))
}

/// Compiles a copy of these files, in strict mode, as tsconfig.json says. Returns its folder.
fn compile((from, name, files): (&str, &str, &[&str])) -> Result<PathBuf> {
    let folder = npm::install(from, name, files)?;
    npm::npm(&folder, &["run", "build"])?;
    Ok(folder)
}

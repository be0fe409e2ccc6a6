//! `cargo xtask lint`: checks the infrastructure's templates with cfn-lint, without access to AWS. It also checks that
//! what their alarms and dashboards watch is emitted, that functions which only fail are noticed, that a second region can
//! have the same names, that an account can bound our roles, that the functions allow recursive loops, that the roles allow
//! what the store does, and that the emulators' files and the guides agree with the templates. The workflows of GitHub
//! Actions are checked by zizmor.

mod account;
mod emulators;
mod global;
mod guides;
mod metrics;
mod parts;
mod roles;
mod stuck;
mod template;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::{root, succeed, target_dir, without_cargos_own, write};
use crate::test::away_from_aws;
use crate::{dist, python};

/// Checks all templates. A warning is an error too.
pub(crate) fn run() -> Result<()> {
    check_version()?;
    parts::check()?;
    roles::check(&read(parts::CORE)?)?;
    metrics::check(&parts::all()?)?;
    for (file, text) in parts::all()? {
        account::check(file, &text)?;
    }
    for file in parts::FILES {
        global::check(file, &read(file)?)?;
        stuck::check(file, &read(file)?)?;
    }
    emulators::check()?;
    guides::check()?;
    let target = target_dir()?;
    check_workflows(&target)?;
    let python = python::install(&target.join("sam"), &root().join("infra/tools/sam.txt"), "samcli")?;
    let made = made(&target.join("lint"))?;
    let mut cfn_lint = Command::new(python.with_file_name("cfn-lint"));
    without_cargos_own(&mut cfn_lint).current_dir(root()).stdin(Stdio::null()).args(parts::FILES).args(made);
    succeed(away_from_aws(&mut cfn_lint)).context("cfn-lint reported a problem")
}

fn check_workflows(target: &Path) -> Result<()> {
    let requirements = root().join("infra/tools/zizmor.txt");
    let zizmor = python::install_program(&target.join("zizmor"), &requirements, "zizmor")?;
    let mut zizmor = Command::new(zizmor);
    // Without questions to GitHub.
    zizmor.args(["--offline", "--quiet", ".github/workflows"]).current_dir(root()).stdin(Stdio::null());
    succeed(&mut zizmor).context("zizmor reported a problem")
}

/// Writes the templates that a release would have into the folder, and returns their paths.
fn made(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = vec![];
    for (name, text) in dist::for_lint()? {
        let path = folder.join(name);
        write(&path, text)?;
        paths.push(path);
    }
    Ok(paths)
}

/// Checks the version that a deployment says of itself, which the tool compares with its own.
fn check_version() -> Result<()> {
    let value = format!("Value: \"{}\"", env!("CARGO_PKG_VERSION"));
    let core = read(parts::CORE)?;
    let parameter = core.split_once("  VersionParameter:\n").map_or("", |(_, rest)| rest);
    let parameter = parameter.split_once("\n\n").map_or(parameter, |(first, _)| first);
    ensure!(parameter.contains(&value), "VersionParameter doesn't have the workspace's version");
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("could not read {path}"))
}

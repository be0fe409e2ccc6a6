//! Installs tools written in Python into separate environments, by uv, with the Python of this machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{output, root, target_dir};

/// The version of uv that is installed if there is none.
const UV: &str = "infra/tools/uv.txt";

/// Installs the pinned requirements of a file into `folder/venv`, and returns the Python that can `import` the named
/// module. Its console scripts are in the same folder. Does nothing if the installation is up to date.
pub(crate) fn install(folder: &Path, requirements: &Path, module: &str) -> Result<PathBuf> {
    install_what_runs(folder, requirements, "python", &["-c", &format!("import {module}")])
}

/// The same for a package that is a program and not a module. Returns the program's path.
pub(crate) fn install_program(folder: &Path, requirements: &Path, program: &str) -> Result<PathBuf> {
    install_what_runs(folder, requirements, program, &["--version"])
}

/// Installs the requirements unless they are there, and the environment's program succeeds with these arguments. Returns
/// the program's path.
fn install_what_runs(folder: &Path, requirements: &Path, program: &str, args: &[&str]) -> Result<PathBuf> {
    let _lock = locked(folder)?;
    let wanted = fs::read_to_string(requirements)
        .with_context(|| format!("could not read {}", requirements.display()))?;
    let stamp = folder.join("stamp");
    let programs = folder.join("venv/bin");
    let program = programs.join(program);
    let is_stamped = fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    // After an update of the system's Python the stamp still exists, but the environment may not work.
    if is_stamped && works(&program, args) {
        return Ok(program);
    }

    println!("xtask: installing {} into {}", requirements.display(), folder.display());
    drop(fs::remove_file(&stamp));
    make_environment(&folder.join("venv"), requirements)
        .with_context(|| format!("uv could not install {}", requirements.display()))?;
    if !works(&program, args) {
        bail!(
            "{} was installed, but `{} {}` fails",
            requirements.display(),
            program.display(),
            args.join(" ")
        );
    }
    fs::write(&stamp, wanted)?;
    Ok(program)
}

/// A new environment with these requirements.
fn make_environment(venv: &Path, requirements: &Path) -> Result<()> {
    if venv.exists() {
        fs::remove_dir_all(venv).with_context(|| format!("could not remove {}", venv.display()))?;
    }
    let (uv, cache) = (uv()?, target_dir()?.join("uv/cache"));
    // Its cache is beside what is installed, so that files are linked. It takes this machine's Python, and fetches none.
    let command = || {
        let mut command = quiet(&uv);
        command.env("UV_CACHE_DIR", &cache).env("UV_PYTHON_DOWNLOADS", "never");
        command
    };
    output(command().args(["venv", "--quiet", "--no-project", "--python", "python3"]).arg(venv))?;
    let mut install = command();
    install.args(["pip", "install", "--quiet", "--python"]).arg(venv.join("bin/python"));
    output(install.arg("--requirement").arg(requirements)).map(drop)
}

/// The program, which is installed unless it is there.
fn uv() -> Result<PathBuf> {
    if works(Path::new("uv"), &["--version"]) {
        return Ok(PathBuf::from("uv"));
    }
    let folder = target_dir()?.join("uv");
    let lock = locked(&folder)?;
    let uv = folder.join("bin/uv");
    if !works(&uv, &["--version"]) {
        output(quiet(Path::new("python3")).args(["-m", "venv"]).arg(&folder)).context(
            "this needs uv (https://docs.astral.sh/uv), or Python 3 with its `venv` module and pip",
        )?;
        let mut pip = quiet(&folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        output(pip.arg(root().join(UV))).context("pip could not install uv")?;
    }
    drop(lock);
    Ok(uv)
}

/// A lock of a folder, which is made if it is missing: two runs at the same time must not overwrite each other. Closing the
/// file releases it.
fn locked(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock().with_context(|| format!("could not lock {}", folder.display()))?;
    Ok(lock)
}

fn works(program: &Path, args: &[&str]) -> bool {
    output(quiet(program).args(args)).is_ok()
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

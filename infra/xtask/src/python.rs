//! Installs tools written in Python into separate environments, with the Python of this machine.
//!
//! Distributions split Python differently: some lack `ensurepip`, some lack `pip`, and `python3 -m venv` then leaves an
//! incomplete folder behind. So the environment is created without pip, which always works, and pip is taken from the
//! first source that has it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::output;

/// The last source, for a Python without any pip: pip can run from within its wheel.
const PIP_WHEEL: &str = "https://files.pythonhosted.org/packages/py3/p/pip/pip-25.3-py3-none-any.whl";
const PIP_WHEEL_SHA256: &str = "9655943313a94722b7774661c21049070f6bbb0a1516bf02f7c8d5d9201514cd";

/// Arguments: address, SHA-256, file to write. The file is written only if its hash is the expected one.
const DOWNLOAD: &str = r"
import hashlib, sys, urllib.request
address, expected, path = sys.argv[1:]
content = urllib.request.urlopen(address, timeout=60).read()
if hashlib.sha256(content).hexdigest() != expected:
    sys.exit('not the expected file: ' + address)
open(path, 'wb').write(content)
";

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
    fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    // Two runs at the same time must not overwrite each other. Closing the file releases the lock.
    let lock = File::create(folder.join("lock"))?;
    lock.lock().with_context(|| format!("could not lock {}", folder.display()))?;

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
    make_environment(&folder.join("venv"))?;
    install_requirements(&programs.join("python"), requirements, folder)?;
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

fn make_environment(venv: &Path) -> Result<()> {
    if venv.exists() {
        fs::remove_dir_all(venv).with_context(|| format!("could not remove {}", venv.display()))?;
    }
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--without-pip"]).arg(venv).stdin(Stdio::null());
    output(&mut command).context("this needs Python 3 with its `venv` module")?;
    Ok(())
}

fn install_requirements(python: &Path, requirements: &Path, folder: &Path) -> Result<()> {
    let mut pip = find_pip(python, folder)?;
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-input", "--requirement"]);
    output(pip.arg(requirements))
        .with_context(|| format!("pip could not install {}", requirements.display()))?;
    Ok(())
}

/// A command that runs pip for the environment of `python`.
fn find_pip(python: &Path, folder: &Path) -> Result<Command> {
    if works(python, &["-m", "ensurepip", "--default-pip"]) && works(python, &["-m", "pip", "--version"]) {
        let mut pip = quiet(python);
        pip.args(["-m", "pip"]);
        return Ok(pip);
    }
    let environment = python.to_string_lossy();
    if works(Path::new("python3"), &["-m", "pip", "--python", &environment, "--version"]) {
        let mut pip = quiet(Path::new("python3"));
        pip.args(["-m", "pip", "--python", &environment]);
        return Ok(pip);
    }
    let wheel = folder.join("pip-25.3-py3-none-any.whl");
    let mut download = quiet(python);
    download.args(["-c", DOWNLOAD, PIP_WHEEL, PIP_WHEEL_SHA256]).arg(&wheel);
    output(&mut download)
        .context("Python has no pip (try your system's python3-venv), and fetching it failed")?;
    let mut pip = quiet(python);
    pip.arg(wheel.join("pip"));
    Ok(pip)
}

fn works(python: &Path, args: &[&str]) -> bool {
    output(quiet(python).args(args)).is_ok()
}

fn quiet(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.stdin(Stdio::null());
    command
}

//! Calls of cargo from a program that cargo has started.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Variables that `cargo run` sets. If child processes inherited them, build scripts that watch these variables would
/// run again for each package.
const SET_BY_CARGO_RUN: &[&str] = &[
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_AUTHORS",
    "CARGO_PKG_DESCRIPTION",
    "CARGO_PKG_HOMEPAGE",
    "CARGO_PKG_LICENSE",
    "CARGO_PKG_LICENSE_FILE",
    "CARGO_PKG_NAME",
    "CARGO_PKG_README",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_RUST_VERSION",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// The variable by which cargo calls another compiler for the workspace's own crates.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";
/// Makes clippy that compiler, and its warnings errors.
pub(crate) const CLIPPY: [(&str, &str); 2] = [(WRAPPER, "clippy-driver"), ("CLIPPY_ARGS", "-Dwarnings")];

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// `cargo ARGS` at the root, with an empty standard input.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    without_cargos_own(&mut command).args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// Removes the variables that `cargo run` has set from a command's environment.
pub(crate) fn without_cargos_own(command: &mut Command) -> &mut Command {
    for name in SET_BY_CARGO_RUN {
        command.env_remove(name);
    }
    command
}

/// Keeps a build from clippy, which CI gives to all: one of other sources or with other features than the tests'.
pub(crate) fn without_clippy(command: &mut Command) -> &mut Command {
    command.env_remove(WRAPPER)
}

/// Runs the command to its end. It inherits our output.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("could not start {}", shown(command)))
}

/// Runs the command. Any exit status other than 0 is an error.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs the command and returns its standard output. An error contains its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("could not start {}", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}\n{}", shown(command), output.status, said.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} wrote no UTF-8", shown(command)))
}

/// The output of `cargo metadata` for the workspace's own packages.
pub(crate) fn metadata() -> Result<Value> {
    let text = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&text).context("cargo metadata wrote no JSON")
}

/// Cargo's target directory, which the user may have moved.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    let dir = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(dir))
}

/// A value of `PATH` with these folders.
pub(crate) fn search_path(folders: impl Iterator<Item = PathBuf>) -> Result<OsString> {
    std::env::join_paths(folders).context("PATH has a folder with a colon in its name")
}

/// Writes a file, and makes the folders above it.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .with_context(|| format!("could not write {}", path.display()))
}

/// A child's exit status as our own. If a signal ended the child, it is a failure.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The command as a user would type it, for messages.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

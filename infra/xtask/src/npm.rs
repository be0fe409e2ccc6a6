//! Installs pinned packages of npm outside of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{output, root, target_dir};

/// Installs what the `package-lock.json` of a folder of the repository names, with its checksums, unless it is there.
/// Returns the folder in which `node_modules` is.
pub(crate) fn install(name: &str) -> Result<PathBuf> {
    let source = root().join("infra/xtask").join(name);
    let folder = target_dir()?.join(name);
    fs::create_dir_all(&folder).with_context(|| format!("could not create {}", folder.display()))?;
    // Two runs at the same time must not overwrite each other. Closing the file releases the lock.
    let guard = fs::File::create(folder.join("lock"))?;
    guard.lock().with_context(|| format!("could not lock {}", folder.display()))?;
    let stamp = folder.join("stamp");
    let lock = read(&source.join("package-lock.json"))?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(folder);
    }
    fs::write(folder.join("package.json"), read(&source.join("package.json"))?)?;
    fs::write(folder.join("package-lock.json"), &lock)?;
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&folder).stdin(Stdio::null());
    output(&mut npm).context("this needs Node 20 or newer with npm (https://nodejs.org)")?;
    fs::write(stamp, lock)?;
    Ok(folder)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

//! Installs pinned packages of npm outside of the repository, so that its folders stay clean.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{output, root, target_dir};

/// Copies a folder's `package.json`, `package-lock.json` and these files, which may be elsewhere, into a folder of this name
/// below the target folder. Installs there what the lock file names, with its checksums, unless it is there. Returns the
/// folder, in which `node_modules` is.
pub(crate) fn install(from: &str, name: &str, files: &[&str]) -> Result<PathBuf> {
    let (source, folder) = (root().join(from), target_dir()?.join(name));
    fs::create_dir_all(&folder).with_context(|| format!("could not create {}", folder.display()))?;
    // Two runs at the same time must not overwrite each other. Closing the file releases the lock.
    let guard = fs::File::create(folder.join("lock"))?;
    guard.lock().with_context(|| format!("could not lock {}", folder.display()))?;
    for file in files.iter().chain(&["package.json", "package-lock.json"]) {
        let (name, text) =
            (Path::new(file).file_name().context("a file without a name")?, read(&source.join(file))?);
        if fs::read(folder.join(name)).ok().as_ref() != Some(&text) {
            fs::write(folder.join(name), text)?;
        }
    }
    let (stamp, lock) = (folder.join("stamp"), read(&source.join("package-lock.json"))?);
    if fs::read(&stamp).ok().as_ref() != Some(&lock) {
        println!("xtask: installing the packages of {from} into {}", folder.display());
        npm(&folder, &["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--engine-strict"])?;
        fs::write(stamp, lock)?;
    }
    Ok(folder)
}

/// `npm ARGS` in a folder.
pub(crate) fn npm(folder: &Path, args: &[&str]) -> Result<()> {
    let mut npm = Command::new("npm");
    output(npm.args(args).current_dir(folder).stdin(Stdio::null()))
        .context("this needs Node 20 or newer with npm (https://nodejs.org)")
        .map(drop)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("could not read {}", path.display()))
}

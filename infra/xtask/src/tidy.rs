//! `cargo xtask tidy`: the rules of this project that neither rustc nor clippy checks.
//!
//! One run reports all violations of all rules.

mod dependencies;
mod features;
mod guide;
mod named_tests;
mod promises;
mod sizes;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cargo::{self, root};

/// The folders with Rust code.
const FOLDERS: &[&str] = &["functions", "shared", "infra", "tests"];

pub(crate) fn run() -> Result<()> {
    let sources = sources()?;
    let mut violations = dependencies::check(&cargo::metadata()?)?;
    violations.extend(sizes::check(&sources));
    let known = named_tests::Tests::of(&sources);
    violations.extend(features::check(&known)?);
    violations.extend(promises::check(&known)?);
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!("{} violations", violations.len());
    }
    println!("tidy: {} Rust files, no violation", sources.len());
    Ok(())
}

struct Source {
    /// Relative to the workspace's root.
    path: PathBuf,
    text: String,
}

fn sources() -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        collect(&root().join(folder), &mut sources)?;
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

fn collect(folder: &Path, sources: &mut Vec<Source>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(&path, sources)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
            sources.push(Source { path: path.strip_prefix(root())?.to_owned(), text });
        }
    }
    Ok(())
}

//! `cargo xtask tidy`: the rules of this house that neither rustc nor clippy checks.
//!
//! Every rule looks at everything, so that one run names all there is to mend.

mod dependencies;
mod features;
mod lexer;
mod source;
mod style;

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::cargo;

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// From the root of the workspace.
    file: PathBuf,
    /// 1-based.
    line: usize,
    message: String,
}

impl Violation {
    fn new(file: &Path, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

impl Display for Violation {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

pub(crate) fn run() -> Result<()> {
    let sources = source::all(cargo::root())?;
    let mut violations = dependencies::check(&cargo::metadata()?)?;
    violations.extend(style::check(&sources));
    violations.extend(features::check(cargo::root(), &sources));
    violations.sort();
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!("{} house rules broken", violations.len());
    }
    println!("tidy: {} Rust files, no house rule broken", sources.len());
    Ok(())
}

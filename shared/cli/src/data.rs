//! `tickover data`: checks, compacts and copies the file of a local server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Subcommand;
use indicatif::{HumanBytes, HumanCount};
use tickover_embedded::data::{self, Findings};

use crate::show;

/// The commands about a data file.
#[derive(Subcommand, Debug)]
pub(crate) enum DataCommand {
    /// Check whether a data file is whole, and show what is in it; a server may have it open
    Check {
        /// The file that the server was started with (`--data`)
        file: PathBuf,
    },
    /// Give the space that a data file doesn't use back to the disk; no server may have it open
    Compact {
        /// The file that a server is started with (`--data`)
        file: PathBuf,
    },
    /// Copy a data file; a server may have it open
    Backup {
        /// The file that the server was started with (`--data`)
        file: PathBuf,
        /// The copy, which must not exist yet
        to: PathBuf,
    },
}

pub(crate) fn run(command: &DataCommand) -> anyhow::Result<()> {
    match command {
        DataCommand::Check { file } => check(file),
        DataCommand::Compact { file } => {
            let (before, after) = data::compact(file)?;
            let saved = before.saturating_sub(after);
            show::print(&format!("{saved} bytes saved: {before} before, {after} now\n"))
        }
        DataCommand::Backup { file, to } => {
            let bytes = data::backup(file, to)?;
            show::print(&format!("copied to {}: {bytes} bytes\n", to.display()))
        }
    }
}

fn check(file: &Path) -> anyhow::Result<()> {
    let findings = data::check(file)?;
    show::print(&report(&findings))?;
    match findings.problem_count {
        0 => Ok(()),
        1 => bail!("1 problem in {}: restore a copy of it", file.display()),
        count => bail!("{count} problems in {}: restore a copy of it", file.display()),
    }
}

fn report(findings: &Findings) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{name:<40}{value}");
    };
    line("schema", &findings.schema.to_string());
    line("file", &HumanBytes(findings.file_bytes).to_string());
    line("log", &HumanBytes(findings.log_bytes).to_string());
    for (kind, count) in &findings.counts {
        line(kind, &HumanCount(*count).to_string());
    }
    for problem in &findings.problems {
        line("problem", problem);
    }
    if findings.problem_count == 0 {
        text.push_str("no problems found\n");
    }
    text
}

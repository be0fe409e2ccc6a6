//! `tickover new`: writes a project of the user's own, with a workflow, its tests and a pipeline.
//!
//! It only writes files. It calls neither cargo nor git, and needs no network.

mod files;
mod name;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;

use crate::show;
use name::ProjectName;

/// The folder of the crate `tickover` in a checkout.
const CRATE: &str = "shared/sdk";
/// The folder of this tool in a checkout.
const TOOL: &str = "shared/cli";
/// The versions that a project without `--path` and `--git` accepts: those that are compatible with this tool.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

/// Options of `tickover new`.
#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// The project's name, which is also the name of its crate and of its queue
    #[arg(value_parser = ProjectName::parse)]
    name: ProjectName,
    /// The folder for it, which must be empty or not exist yet; by default it has the project's name
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Depend on this checkout of Tickover's repository instead of the published version
    #[arg(long, value_name = "DIR", conflicts_with = "git")]
    path: Option<PathBuf>,
    /// Depend on this git repository of Tickover instead of the published version
    #[arg(long, value_name = "URL", value_parser = url)]
    git: Option<String>,
    /// The commit of that repository; by default the newest of its main branch
    #[arg(long, value_name = "COMMIT", requires = "git")]
    rev: Option<String>,
}

/// Where a project gets the crate `tickover` from.
#[derive(Debug)]
enum Source {
    Published,
    /// A checkout, with its absolute path.
    Path(String),
    Git {
        url: String,
        rev: Option<String>,
    },
}

/// Writes the project, and prints what to do next.
pub(crate) fn run(args: NewArgs) -> anyhow::Result<()> {
    let NewArgs { name, into, path, git, rev } = args;
    let folder = into.unwrap_or_else(|| PathBuf::from(name.as_str()));
    let source = match (path, git) {
        (Some(checkout), _) => Source::checkout(&checkout)?,
        (None, Some(url)) => Source::Git { url, rev },
        (None, None) => Source::Published,
    };
    let files = files::of(&[
        ("name", name.as_str()),
        ("crate", &name.identifier()),
        ("stack", &name.stack()),
        ("source", &source.dependency()?),
        ("install", &source.install()?),
    ])?;
    check_free(&folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        let advice = || format!("could not write {}: name another folder with --into", path.display());
        write(&path, &text).with_context(advice)?;
    }
    show::print(&closing(&name, &folder))
}

/// Refuses a folder that has something in it.
fn check_free(folder: &Path) -> anyhow::Result<()> {
    let at = folder.display();
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            ensure!(entries.next().is_none(), "the folder {at} isn't empty: name another one with --into");
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("{at} isn't a folder: name another one with --into")
        }
        Err(error) => Err(error).with_context(|| format!("could not read the folder {at}")),
    }
}

/// Writes a new file, and the folders above it.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}

fn closing(name: &ProjectName, folder: &Path) -> String {
    format!(
        "created {}: a workflow, its tests and a pipeline. It isn't a git repository yet: `git init`\n\
         cd {}\n\
         cargo test   # runs the workflow in virtual time, and loses its worker\n\
         cargo run    # runs the whole system in one process; the README says how to start an order\n",
        name.as_str(),
        folder.display(),
    )
}

impl Source {
    fn checkout(folder: &Path) -> anyhow::Result<Self> {
        let at = folder.display();
        let is_ours = folder.join(CRATE).join("Cargo.toml").is_file();
        ensure!(
            is_ours,
            "--path: {at} has no {CRATE}: name the folder of a checkout of Tickover's repository"
        );
        // The project may be elsewhere than the current folder.
        let folder = fs::canonicalize(folder).with_context(|| format!("--path: could not read {at}"))?;
        let text = folder.to_str().with_context(|| format!("--path: {at} isn't UTF-8"))?;
        Ok(Self::Path(text.to_owned()))
    }

    /// The keys of the dependency in the project's manifest.
    fn dependency(&self) -> anyhow::Result<String> {
        Ok(match self {
            Self::Published => format!("version = {}", quoted(VERSION)?),
            Self::Path(checkout) => format!("path = {}", quoted(&format!("{checkout}/{CRATE}"))?),
            Self::Git { url, rev: None } => format!("git = {}", quoted(url)?),
            Self::Git { url, rev: Some(rev) } => format!("git = {}, rev = {}", quoted(url)?, quoted(rev)?),
        })
    }

    /// The arguments with which `cargo install` installs this tool from the same source.
    fn install(&self) -> anyhow::Result<String> {
        Ok(match self {
            Self::Published => "tickover-cli".to_owned(),
            Self::Path(checkout) => format!("--path {}", quoted(&format!("{checkout}/{TOOL}"))?),
            Self::Git { url, rev: None } => format!("--git {} tickover-cli", quoted(url)?),
            Self::Git { url, rev: Some(rev) } => {
                format!("--git {} --rev {} tickover-cli", quoted(url)?, quoted(rev)?)
            }
        })
    }
}

/// The text in quotes, with the escapes that JSON and TOML have in common.
fn quoted(text: &str) -> anyhow::Result<String> {
    Ok(serde_json::to_string(text)?)
}

/// Checks a repository's URL only as far as a slip would end in an unreadable project: cargo knows the rest.
fn url(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("expected a URL, such as https://github.com/someone/tickover".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_on_a_version_a_checkout_or_a_repository() {
        let git =
            |rev: Option<&str>| Source::Git { url: "https://x/y".to_owned(), rev: rev.map(str::to_owned) };
        assert_eq!(Source::Published.dependency().unwrap(), format!("version = \"{VERSION}\""));
        assert_eq!(git(None).dependency().unwrap(), r#"git = "https://x/y""#);
        assert_eq!(git(Some("ab")).dependency().unwrap(), r#"git = "https://x/y", rev = "ab""#);
        let odd = Source::Path(r#"/a "b"\c"#.to_owned()).dependency().unwrap();
        assert_eq!(odd, r#"path = "/a \"b\"\\c/shared/sdk""#);
    }
}

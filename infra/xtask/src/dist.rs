//! `cargo xtask dist`: everything that a release consists of beside the crates, in `target/dist/VERSION`.
//!
//! The folder has the functions' archives and the tool for each architecture, templates that name the archives, a list of
//! all dependencies (`CycloneDX`), `manifest.json` and `SHA256SUMS`. The same sources and tools give the same bytes.

mod archive;
mod sbom;
mod templates;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::build::{self, Architecture, FUNCTIONS};
use crate::cargo::{output, root, target_dir, write};
use crate::test;
pub(crate) use templates::for_lint;

/// The version of all our crates.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// All packages' names begin so, and the archives' don't.
const PREFIX: &str = "tickover-";
const CHECKSUMS: &str = "SHA256SUMS";
/// What the tool's archive has beside the tool.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Options of `cargo xtask dist`.
#[derive(Args)]
pub(crate) struct DistArgs {
    /// Build for this architecture, and fail if this machine can't; by default for each that it can build for
    #[arg(long, value_enum)]
    architecture: Vec<Architecture>,
}

/// What was built for one architecture.
struct Built {
    architecture: Architecture,
    /// The folder with each function as `NAME/bootstrap`.
    functions: PathBuf,
    /// The tool's program.
    tool: PathBuf,
}

/// What a release is made from.
struct Release {
    built: Vec<Built>,
    /// The architectures that are missing, with the reason.
    left_out: Vec<(Architecture, String)>,
    /// The commit, with `-dirty` at its end if files differ from it.
    commit: String,
    sbom: Vec<u8>,
}

/// Builds, writes the folder, and prints its path.
pub(crate) fn run(args: &DistArgs) -> Result<()> {
    // Before the builds, which take a while: somebody may commit meanwhile.
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"])?;
    let committed_at = git(&["log", "-1", "--format=%cI"])?;
    let mut built = vec![];
    let mut left_out = vec![];
    for architecture in Architecture::ALL {
        let is_asked_for = args.architecture.contains(&architecture);
        if !is_asked_for && !args.architecture.is_empty() {
            left_out.push((architecture, "not asked for".to_owned()));
        } else if architecture.has_standard_library()? {
            let functions = build::run(architecture)?;
            built.push(Built { architecture, functions, tool: build::tool(architecture)? });
        } else {
            let target = architecture.target();
            let reason =
                format!("the toolchain has no standard library of {target}: rustup target add {target}");
            ensure!(!is_asked_for, "{}: {reason}", architecture.name());
            println!("dist: {} IS LEFT OUT: {reason}", architecture.name());
            left_out.push((architecture, reason));
        }
    }
    ensure!(!built.is_empty(), "no architecture is left to build for");
    let folder = target_dir()?.join("dist").join(VERSION);
    make(built, left_out, commit, &committed_at, &folder)?;
    println!("{}", folder.display());
    Ok(())
}

/// Makes a release for this machine's architecture, for the tests of its deployment. Its tool is the one of the tests, which
/// is built already. Returns the release's folder.
pub(crate) fn of_this_machine() -> Result<PathBuf> {
    let architecture = Architecture::here();
    let folder = target_dir()?.join("tmp/dist");
    test::build()?;
    let tool = target_dir()?.join("debug/tickover");
    let built = Built { architecture, functions: build::run(architecture)?, tool };
    make(vec![built], vec![], "none".to_owned(), "1970-01-01T00:00:00Z", &folder)?;
    Ok(folder)
}

fn make(
    built: Vec<Built>,
    left_out: Vec<(Architecture, String)>,
    commit: String,
    committed_at: &str,
    folder: &Path,
) -> Result<()> {
    let targets: Vec<&str> = built.iter().map(|built| built.architecture.target()).collect();
    let sbom = sbom::of(&targets, committed_at)?;
    Release { built, left_out, commit, sbom }.write(folder)
}

impl Release {
    /// Writes all files into the folder, in place of what is there.
    fn write(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("could not remove {}", folder.display()))?;
        }
        let mut files = self.templates()?;
        for built in &self.built {
            files.extend(built.archives()?);
        }
        files.push((format!("{PREFIX}{VERSION}.cdx.json"), self.sbom.clone()));
        files.push(("manifest.json".to_owned(), self.manifest()?));
        files.sort();
        files.push((CHECKSUMS.to_owned(), checksums(&files).into_bytes()));
        for (path, bytes) in files {
            write(&folder.join(path), bytes)?;
        }
        Ok(())
    }

    fn templates(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let architectures: Vec<Architecture> = self.built.iter().map(|built| built.architecture).collect();
        let files = templates::of(&architectures)?.into_iter();
        Ok(files.map(|(path, text)| (path, text.into_bytes())).collect())
    }

    fn manifest(&self) -> Result<Vec<u8>> {
        let is_built = self.built.iter().map(|built| (built.architecture, "built".to_owned()));
        let left_out =
            self.left_out.iter().map(|(architecture, why)| (*architecture, format!("left out: {why}")));
        let architectures =
            is_built.chain(left_out).map(|(one, state)| (one.name().to_owned(), state.into()));
        let architectures: Map<String, Value> = architectures.collect();
        let manifest = json!({ "version": VERSION, "commit": self.commit, "architectures": architectures });
        Ok(format!("{}\n", serde_json::to_string_pretty(&manifest)?).into_bytes())
    }
}

impl Built {
    /// The archives, with their paths in the release's folder.
    fn archives(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let name = self.architecture.name();
        let mut files = vec![];
        for function in FUNCTIONS {
            let program = read(&self.functions.join(function).join("bootstrap"))?;
            files.push((templates::archive(name, short(function)?), archive::zip("bootstrap", &program)?));
        }
        let tool = format!("{PREFIX}{VERSION}-linux-{name}");
        let mut contents = vec![(format!("{tool}/tickover"), read(&self.tool)?, archive::PROGRAM)];
        for license in LICENSES {
            contents.push((format!("{tool}/{license}"), read(&root().join(license))?, archive::TEXT));
        }
        files.push((format!("{tool}.tar.gz"), archive::tar_gz(&contents)?));
        Ok(files)
    }
}

/// The name of a function's archive.
fn short(function: &str) -> Result<&str> {
    function.strip_prefix(PREFIX).with_context(|| format!("{function} doesn't begin with {PREFIX}"))
}

/// A line for each file, as `sha256sum -c` reads it.
fn checksums(files: &[(String, Vec<u8>)]) -> String {
    files.iter().map(|(path, bytes)| hex(&Sha256::digest(bytes)) + "  " + path + "\n").collect()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).into_iter();
    bytes.iter().flat_map(|byte| digit(byte >> 4).chain(digit(byte & 15))).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("could not read {}", path.display()))
}

/// What git prints at the root, without the end of its line.
fn git(args: &[&str]) -> Result<String> {
    let said = output(std::process::Command::new("git").args(args).current_dir(root()))?;
    let said = said.trim_end();
    if said.is_empty() {
        bail!("git {} printed nothing", args.join(" "));
    }
    Ok(said.to_owned())
}

#[cfg(test)]
mod tests;

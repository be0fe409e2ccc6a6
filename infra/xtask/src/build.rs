//! `cargo xtask build`: builds all functions for deployment.
//!
//! `sam build` calls cargo-lambda for each function. These builds have the same features, so each of the two finds what the
//! other one has built, and measures and releases are of the programs that SAM deploys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::cargo::{cargo, output, root, search_path, succeed, target_dir, without_clippy};
use crate::python;

/// The function of the HTTP API.
pub(crate) const GATEWAY: &str = "tickover-gateway";
/// The packages of the functions, which are also the names of their binaries.
pub(crate) const FUNCTIONS: [&str; 6] =
    ["tickover-schedule", "tickover-claim", "tickover-complete", "tickover-tick", GATEWAY, "tickover-worker"];
/// The function that does nothing, with which the others are compared.
const EMPTY: &str = "tickover-empty";
/// The functions with features of dependencies that no other one has. In one build with them, all would have these.
const APART: [&str; 1] = [GATEWAY];
/// The package of the command-line tool.
pub(crate) const TOOL: &str = "tickover-cli";

/// The processor architecture of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    #[value(name = "arm64")]
    Arm64,
    #[value(name = "x86_64")]
    X86,
}

impl Architecture {
    pub(crate) const ALL: [Self; 2] = [Self::Arm64, Self::X86];

    /// The architecture of this machine: emulators run functions on it.
    pub(crate) fn here() -> Self {
        if std::env::consts::ARCH == "aarch64" { Self::Arm64 } else { Self::X86 }
    }

    /// Its name in the template.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::X86 => "x86_64",
        }
    }

    /// Its name for the compiler.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Arm64 => "aarch64-unknown-linux-gnu",
            Self::X86 => "x86_64-unknown-linux-gnu",
        }
    }

    /// Whether programs can be built for it. The linker is there for both.
    pub(crate) fn has_standard_library(self) -> Result<bool> {
        let mut ask = Command::new("rustc");
        let folder = output(ask.args(["--print", "target-libdir", "--target", self.target()]))?;
        Ok(Path::new(folder.trim()).is_dir())
    }

    /// Its option of cargo-lambda.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Arm64 => "--arm64",
            Self::X86 => "--x86-64",
        }
    }
}

/// Builds all functions. The returned folder contains each as `NAME/bootstrap`.
pub(crate) fn run(architecture: Architecture) -> Result<PathBuf> {
    build(architecture, &FUNCTIONS)
}

/// Builds all functions and the empty one.
pub(crate) fn with_empty(architecture: Architecture) -> Result<PathBuf> {
    let packages: Vec<_> = FUNCTIONS.into_iter().chain([EMPTY]).collect();
    build(architecture, &packages)
}

/// Builds the tool with its AWS parts, and returns its program. It needs no newer glibc than the functions do.
pub(crate) fn tool(architecture: Architecture) -> Result<PathBuf> {
    let folder = target_dir()?.join("tool").join(architecture.name());
    let mut build = lambda(architecture, &folder)?;
    build.args(["--package", TOOL, "--bin", "tickover", "--features", "aws"]);
    // cargo-lambda would choose Lambda's processors, and machines of people can be older.
    build.arg("--disable-optimizations");
    succeed(&mut build).context("the tool could not be built")?;
    Ok(folder.join("tickover/bootstrap"))
}

fn build(architecture: Architecture, packages: &[&str]) -> Result<PathBuf> {
    // A separate folder for each architecture: cargo-lambda would use the same one.
    let folder = target_dir()?.join("functions").join(architecture.name());
    let (apart, alike): (Vec<&str>, Vec<&str>) = packages.iter().partition(|name| APART.contains(name));
    for together in apart.chunks(1).chain([alike.as_slice()]) {
        let mut build = lambda(architecture, &folder)?;
        build.arg("--bins");
        for package in together {
            build.args(["--package", package]);
        }
        succeed(&mut build).context("the functions could not be built")?;
    }
    Ok(folder)
}

/// A call of cargo-lambda that writes each program as `NAME/bootstrap` into the folder.
fn lambda(architecture: Architecture, folder: &Path) -> Result<Command> {
    let mut build = cargo(&["lambda", "build", "--release", "--locked", architecture.flag()]);
    without_clippy(&mut build).arg("--lambda-dir").arg(folder).env("PATH", path()?);
    Ok(build)
}

/// `PATH` with cargo-lambda, which is installed if it is missing.
pub(crate) fn path() -> Result<OsString> {
    let folder = target_dir()?.join("cargo-lambda");
    let python = python::install(&folder, &root().join("infra/tools/cargo-lambda.txt"), "ziglang")?;
    let ours = python.parent().context("a program without a folder")?.to_owned();
    #[expect(clippy::disallowed_methods, reason = "where programs are is no configuration of the service")]
    let theirs = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(ours).chain(std::env::split_paths(&theirs));
    search_path(folders)
}

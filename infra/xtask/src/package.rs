//! Publishes the crates by a dry run, compiles and documents what was packed, without the network, and runs the demo of the
//! tool that is built from it.
//!
//! A package is compiled from its own files alone, so a file that it reads from elsewhere in this repository is found. The
//! dry run could compile them too, but in a folder of its own, so it would compile all dependencies again. Here they are in
//! a workspace that has no other code, all together. A feature that a crate needs and only another one asks for is found by
//! what is built as a user has it: a new project with its function (`example`, `e2e`), and the tool alone.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::build::TOOL;
use crate::cargo::{cargo, metadata, root, succeed, target_dir};
use crate::project;

/// What the registry or its users ask of each crate. Lists have at least one entry.
const ASKED: [&str; 6] = ["description", "license", "readme", "keywords", "categories", "rust_version"];
/// The folder of all published crates, and of no other.
const FOLDER: &str = "shared";

pub(crate) fn run() -> Result<()> {
    let metadata = metadata()?;
    let names = published(&metadata)?;
    // Changes that aren't committed may be checked too.
    let options = ["--workspace", "--no-verify", "--locked", "--allow-dirty"];
    succeed(cargo(&["publish", "--dry-run"]).args(options))?;
    // The dry run leaves no packages.
    let mut package = cargo(&["package", "--offline"]);
    for name in &names {
        package.args(["--package", name]);
    }
    succeed(package.args(&options[1..]))?;
    let target = target_dir()?;
    let folder = target.join("package/unpacked");
    unpack(&names, &target.join("package"), &folder)?;
    let on_packed = |command: &str, args: &[&str]| {
        let mut call = cargo(&[command, "--offline", "--target-dir"]);
        call.arg(&target).args(args).current_dir(&folder).env("RUSTDOCFLAGS", "-D warnings");
        succeed(project::alike(&mut call))
    };
    let all = ["--workspace", "--all-features"];
    on_packed("check", &all).context("a packed crate doesn't compile")?;
    on_packed("doc", &[&all[..], &["--no-deps"]].concat()).context("the documentation has warnings")?;
    on_packed("build", &["--package", TOOL]).context("the packed tool can't be built alone")?;
    demo(&target.join("debug/tickover"))
}

/// The demo of the README, and that the tool says how to get the AWS parts that it lacks.
fn demo(tool: &Path) -> Result<()> {
    succeed(Command::new(tool).arg("demo").stdin(Stdio::null()))?;
    let refused = Command::new(tool).args(["--stack", "tickover", "list"]).output()?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(
        !refused.status.success() && said.contains("cargo install"),
        "`--stack` without AWS parts: {said}"
    );
    Ok(())
}

/// Makes a workspace of the packed crates, with the versions of Cargo.lock.
fn unpack(names: &[String], packed: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("could not remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    let mut manifest =
        "[workspace]\nresolver = \"3\"\nmembers = [\"tickover*\"]\n\n[patch.crates-io]\n".to_owned();
    for name in names {
        let package = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        let file = packed.join(format!("{package}.crate"));
        let file = File::open(&file).with_context(|| format!("could not read {}", file.display()))?;
        let mut archive = tar::Archive::new(GzDecoder::new(file));
        // All packed files have the same old time. With it, cargo would take them for those of the last check.
        archive.set_preserve_mtime(false);
        archive.unpack(folder)?;
        writeln!(manifest, "{name} = {{ path = \"{package}\" }}")?;
    }
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// The names of the crates that are published. Checks what they say of themselves.
fn published(metadata: &Value) -> Result<Vec<String>> {
    let root = metadata["workspace_root"].as_str().context("cargo metadata names no root")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut names = vec![];
    for package in packages {
        let name = package["name"].as_str().context("a package without a name")?;
        let manifest = package["manifest_path"].as_str().context("a package without a manifest")?;
        // Without `publish` in the manifest, this is `null`. With `publish = false` it is an empty list of registries.
        let is_published = package["publish"].is_null();
        let is_shared = manifest.starts_with(&format!("{root}/{FOLDER}/"));
        ensure!(is_published == is_shared, "{name}: the crates of {FOLDER}, and no others, are published");
        if !is_published {
            continue;
        }
        let is_missing = |key: &&str| match &package[*key] {
            Value::String(text) => text.is_empty(),
            Value::Array(entries) => entries.is_empty(),
            _ => true,
        };
        let missing: Vec<&str> = ASKED.into_iter().filter(is_missing).collect();
        ensure!(missing.is_empty(), "{name} has no {}", missing.join(", "));
        names.push(name.to_owned());
    }
    ensure!(!names.is_empty(), "no crate is published");
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shared_crates_are_published_and_say_what_they_are() {
        let real = metadata().unwrap();
        let names = published(&real).unwrap();
        assert!(
            names.iter().any(|name| name == "tickover") && names.iter().any(|name| name == "tickover-cli")
        );
        assert!(!names.iter().any(|name| name == "xtask"));
        // `cargo run`, as the README says, runs the tool.
        let runs = real["workspace_default_members"].as_array().unwrap();
        assert!(matches!(&runs[..], [one] if one.as_str().unwrap().contains("shared/cli")), "{runs:?}");
        for (key, value) in ASKED.iter().map(|key| (*key, json!(null))).chain([("keywords", json!([]))]) {
            let mut changed = real.clone();
            for package in changed["packages"].as_array_mut().unwrap() {
                package[key] = value.clone();
            }
            let refused = published(&changed).unwrap_err().to_string();
            assert!(refused.ends_with(key), "{refused}");
        }
    }

    #[test]
    fn a_crate_that_is_published_by_mistake_is_found() {
        for publish in [json!(null), json!([])] {
            let mut changed = metadata().unwrap();
            for package in changed["packages"].as_array_mut().unwrap() {
                package["publish"] = publish.clone();
            }
            published(&changed).unwrap_err();
        }
    }
}

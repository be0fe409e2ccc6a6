//! That versions are declared once, at the root, and that only adapters name the AWS SDK. Which of our crates may depend on
//! which, `.deny.toml` says.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use toml::{Table, Value as Toml};

use crate::cargo::root;

/// Where the AWS SDK may be named: the adapters, what wires them, and the tests.
const MAY_USE_AWS: &[&str] = &["shared/dynamodb", "shared/sqs", "shared/lambda", "shared/sdk", "tests"];

/// What counts as the AWS SDK. AWS-LC doesn't: it is the cryptography of every TLS connection.
const AWS: &[&str] = &[
    "aws-config",
    "aws-credential-types",
    "aws-runtime",
    "aws-sdk-",
    "aws-sigv4",
    "aws-smithy-",
    "aws-types",
];

/// A package of the workspace.
struct Member {
    /// From the root of the workspace.
    folder: PathBuf,
    manifest: Table,
}

pub(super) fn check(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut violations = Vec::new();
    for package in packages {
        violations.extend(check_member(&Member::read(package)?));
    }
    Ok(violations)
}

impl Member {
    fn read(package: &Value) -> Result<Self> {
        let path = Path::new(package["manifest_path"].as_str().context("a package without a manifest")?);
        let text = fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
        let folder = path.parent().and_then(|folder| folder.strip_prefix(root()).ok());
        let folder = folder.context("a package outside of the workspace")?.to_owned();
        Ok(Self { folder, manifest: text.parse()? })
    }

    /// Each dependency with its declaration, those of tests and build scripts included.
    fn dependencies(&self) -> impl Iterator<Item = (&String, &Toml)> {
        let targets =
            self.manifest.get("target").and_then(Toml::as_table).into_iter().flat_map(Table::values);
        let tables = [&self.manifest].into_iter().chain(targets.filter_map(Toml::as_table)).flatten();
        let tables = tables.filter(|(key, _)| key.ends_with("dependencies"));
        tables.filter_map(|(_, table)| table.as_table()).flatten()
    }
}

fn check_member(member: &Member) -> Vec<String> {
    let file = member.folder.join("Cargo.toml");
    let mut violations = Vec::new();
    let mut report = |message: String| violations.push(format!("{}: {message}", file.display()));
    for (name, declaration) in member.dependencies() {
        let is_ours = name.starts_with("tickover");
        // In tests, a crate may depend on one that depends on it. With a version, neither could be published first.
        // Cargo refuses to pack such a dependency outside of tests.
        let is_path = is_ours && declaration.get("path").is_some() && declaration.get("version").is_none();
        if declaration.get("workspace").is_none() && !is_path {
            report(format!("`{name}` is declared here; declare it at the root, use `workspace = true`"));
        }
        let is_aws = AWS.iter().any(|family| name.starts_with(family));
        if is_aws && !MAY_USE_AWS.iter().any(|folder| member.folder.starts_with(folder)) {
            report(format!("`{name}` is for {MAY_USE_AWS:?} only"));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, manifest: &str) -> Vec<String> {
        check_member(&Member { folder: PathBuf::from(folder), manifest: manifest.parse().unwrap() })
    }

    #[test]
    fn the_aws_sdk_outside_of_the_adapters_is_found() {
        let manifest = "[dependencies]\naws-sdk-sqs.workspace = true\naws-sigv4.workspace = true\n";
        assert_eq!(member("shared/sqs", manifest).len(), 0);
        assert_eq!(member("functions/tick", manifest).len(), 2);
    }

    #[test]
    fn a_version_outside_of_the_root_is_found_wherever_it_is_declared() {
        let manifest = "[package]\nname = \"x\"\n[dev-dependencies]\na = \"1\"\nb = { workspace = true }\nc = { version = \"1\" }\n\
                        [dependencies.d]\nversion = \"1\"\n[target.'cfg(unix)'.dependencies]\ne = \"1\"\n";
        let found = member("tests", manifest);
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn a_path_alone_is_for_our_own_crates() {
        assert_eq!(
            member("shared/macros", "[dev-dependencies]\ntickover = { path = \"../sdk\" }\n").len(),
            0
        );
        for declaration in
            ["tickover = { path = \"../sdk\", version = \"1\" }", "other = { path = \"../other\" }"]
        {
            assert_eq!(member("shared/macros", &format!("[dev-dependencies]\n{declaration}\n")).len(), 1);
        }
    }
}

//! Which crate may depend on which. The arrows point one way: functions and tools to adapters, to
//! the service, to the core.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::Violation;
use crate::cargo::root;

/// The crates of this workspace that a folder's crate may depend on, in its tests as well.
const ARROWS: &[(&str, &[&str])] = &[
    ("shared/core", &[]),
    ("shared/macros", &["tickover-core", "tickover"]),
    ("shared/service", &["tickover-core"]),
    ("shared/wire", &["tickover-core"]),
    ("shared/dynamodb", &["tickover-core", "tickover-service"]),
    ("shared/sqs", &["tickover-core", "tickover-service"]),
    ("shared/api", &["tickover-core", "tickover-service", "tickover-wire"]),
    ("shared/embedded", &["tickover-core", "tickover-service", "tickover-dynamodb", "tickover-api"]),
    (
        "shared/lambda",
        &["tickover-core", "tickover-service", "tickover-dynamodb", "tickover-sqs", "tickover-api"],
    ),
    (
        "shared/sdk",
        &[
            "tickover",
            "tickover-core",
            "tickover-macros",
            "tickover-service",
            "tickover-wire",
            "tickover-dynamodb",
            "tickover-sqs",
            "tickover-embedded",
            "tickover-lambda",
            "tickover-api",
        ],
    ),
    ("shared/cli", &["tickover", "tickover-core", "tickover-service", "tickover-wire", "tickover-embedded"]),
    ("functions/worker", &["tickover"]),
    ("functions", &["tickover-core", "tickover-service", "tickover-api", "tickover-lambda"]),
    ("infra/empty", &[]),
    ("infra/xtask", &[]),
    ("tests", ANYTHING),
];

const ANYTHING: &[&str] = &["*"];

/// Where the AWS SDK may be named: the adapters, what wires them, and the tests.
const MAY_USE_AWS: &[&str] = &["shared/dynamodb", "shared/sqs", "shared/embedded", "shared/lambda", "tests"];

/// What counts as the AWS SDK.
const AWS: &[&str] = &["aws-config", "aws-sdk-", "aws-smithy-"];

/// A package of the workspace.
struct Member {
    /// From the root of the workspace.
    folder: PathBuf,
    dependencies: Vec<String>,
    manifest: String,
}

pub(super) fn check(metadata: &Value) -> Result<Vec<Violation>> {
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
        let manifest =
            fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
        let folder = path.parent().and_then(|folder| folder.strip_prefix(root()).ok());
        let folder = folder.context("a package outside of the workspace")?.to_owned();
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let dependencies =
            dependencies.filter_map(|dependency| dependency["name"].as_str()).map(str::to_owned);
        Ok(Self { folder, dependencies: dependencies.collect(), manifest })
    }

    fn violation(&self, line: usize, message: String) -> Violation {
        Violation::new(&self.folder.join("Cargo.toml"), line, message)
    }

    /// The line that declares a dependency; 1 if it is declared in some other way.
    fn line_of(&self, dependency: &str) -> usize {
        let declares = |line: &str| key(line).is_some_and(|(name, _)| name == dependency);
        self.manifest.lines().position(declares).map_or(1, |index| index + 1)
    }
}

fn check_member(member: &Member) -> Vec<Violation> {
    let mut violations = declared_here(member);
    let Some((_, allowed)) = ARROWS.iter().find(|(folder, _)| member.folder.starts_with(folder)) else {
        let rule = "a new crate: say in infra/xtask/src/tidy/dependencies.rs what it may depend on";
        violations.push(member.violation(1, rule.to_owned()));
        return violations;
    };
    for name in &member.dependencies {
        let is_ours = name.starts_with("tickover");
        if is_ours && *allowed != ANYTHING && !allowed.contains(&name.as_str()) {
            let message = format!("`{name}` is not below this crate; it may use {allowed:?}");
            violations.push(member.violation(member.line_of(name), message));
        }
        let is_aws = AWS.iter().any(|family| name.starts_with(family));
        if is_aws && !MAY_USE_AWS.iter().any(|folder| member.folder.starts_with(folder)) {
            let message = format!("`{name}` is for {MAY_USE_AWS:?} only");
            violations.push(member.violation(member.line_of(name), message));
        }
    }
    violations
}

/// Dependencies that don't take their version and source from the workspace.
fn declared_here(member: &Member) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut is_dependencies = false;
    for (index, line) in member.manifest.lines().enumerate() {
        if let Some(section) = line.trim().strip_prefix('[').filter(|_| line.trim().ends_with(']')) {
            is_dependencies = section.trim_end_matches(']').ends_with("dependencies");
            if section.contains("dependencies.") {
                violations.push(member.violation(index + 1, "one line a dependency".to_owned()));
            }
        } else if let Some((name, is_workspaces)) = key(line)
            && is_dependencies
            && !is_workspaces
        {
            let message =
                format!("`{name}` is declared here; declare it at the root, use `workspace = true`");
            violations.push(member.violation(index + 1, message));
        }
    }
    violations
}

/// The name that a line of a manifest gives a value to, and whether that value is the workspace's.
fn key(line: &str) -> Option<(&str, bool)> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let name = key.strip_suffix(".workspace").unwrap_or(key);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let is_workspaces = name != key || value.replace(' ', "").contains("workspace=true");
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, is_workspaces))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, dependencies: &[&str], manifest: &str) -> Vec<String> {
        let member = Member {
            folder: PathBuf::from(folder),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            manifest: manifest.to_owned(),
        };
        check_member(&member).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_arrow_that_points_back_is_found_at_its_line() {
        let manifest = "[dependencies]\nserde.workspace = true\ntickover-service.workspace = true\n";
        let found = member("shared/core", &["serde", "tickover-service"], manifest);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("shared/core/Cargo.toml:3: `tickover-service`"), "{found:?}");
    }

    #[test]
    fn the_aws_sdk_outside_of_the_adapters_is_found() {
        let manifest = "[dependencies]\naws-sdk-sqs.workspace = true\n";
        assert_eq!(member("shared/sqs", &["aws-sdk-sqs"], manifest).len(), 0);
        assert_eq!(member("functions/tick", &["aws-sdk-sqs"], manifest).len(), 1);
    }

    #[test]
    fn a_version_outside_of_the_root_is_found() {
        let manifest = "[package]\nname = \"x\"\n[dev-dependencies]\na = \"1\"\nb = { workspace = true }\nc = { version = \"1\" }\n";
        let found = member("tests", &["a", "b", "c"], manifest);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_crate_without_a_rule_is_found() {
        assert_eq!(member("shared/new", &[], "").len(), 1);
    }
}

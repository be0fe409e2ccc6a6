//! Which crate may depend on which, and that versions are declared once, at the root. The arrows point one way:
//! functions and tools to adapters, to the service, to the core.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use toml::{Table, Value as Toml};

use crate::cargo::{cargo, output, root};

/// The crates of this workspace that a folder's crate may depend on, in its tests as well.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("shared/core", &[]),
    ("shared/macros", &["tickover-core", "tickover"]),
    ("shared/service", &["tickover-core"]),
    ("shared/wire", &["tickover-core"]),
    ("shared/dynamodb", &["tickover-core", "tickover-service"]),
    ("shared/sqs", &["tickover-core", "tickover-service"]),
    ("shared/api", &["tickover-core", "tickover-service", "tickover-wire"]),
    ("shared/sqlite", &["tickover-core", "tickover-service"]),
    ("shared/dashboard", &[]),
    (
        "shared/embedded",
        &["tickover-core", "tickover-service", "tickover-sqlite", "tickover-api", "tickover-dashboard"],
    ),
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
    (
        "shared/cli",
        &[
            "tickover",
            "tickover-core",
            "tickover-service",
            "tickover-wire",
            "tickover-embedded",
            "tickover-dashboard",
        ],
    ),
    ("functions/worker", &["tickover"]),
    ("functions", &["tickover-core", "tickover-service", "tickover-api", "tickover-lambda"]),
    ("infra/empty", &[]),
    ("infra/xtask", &[]),
    ("tests", ANYTHING),
];

const ANYTHING: &[&str] = &["*"];

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

/// A build on one machine, which must be quick.
struct Build {
    name: &'static str,
    flags: &'static [&'static str],
}

/// What such a build doesn't compile, by the beginnings of the crates' names: the AWS SDK, TLS, and what only
/// tests need: the stand-in for `DynamoDB`, and the generator of the `OpenAPI` document.
const NEVER: &[&str] = &["aws-", "rustls", "dynoxide", "utoipa"];

/// A user's crate with the whole system in its own process, and the tool as `cargo run -- demo` builds it.
const WITHOUT_AWS: &[Build] = &[
    Build {
        name: "shared/sdk/Cargo.toml: the feature `embedded`",
        flags: &["--package=tickover", "--no-default-features", "--features=embedded"],
    },
    Build { name: "shared/cli/Cargo.toml: the tool without features", flags: &["--package=tickover-cli"] },
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
    for build in WITHOUT_AWS {
        let mut tree = vec!["tree", "--locked", "--edges=normal,build", "--prefix=none", "--format={p}"];
        tree.extend(build.flags);
        violations.extend(build.check(&output(&mut cargo(&tree))?));
    }
    Ok(violations)
}

impl Build {
    /// Checks the packages that it compiles, one on each line.
    fn check(&self, tree: &str) -> Vec<String> {
        let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        let foreign = names.into_iter().filter(|name| NEVER.iter().any(|prefix| name.starts_with(prefix)));
        foreign.map(|name| format!("{} compiles `{name}`", self.name)).collect()
    }
}

impl Member {
    fn read(package: &Value) -> Result<Self> {
        let path = Path::new(package["manifest_path"].as_str().context("a package without a manifest")?);
        let text = fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
        let folder = path.parent().and_then(|folder| folder.strip_prefix(root()).ok());
        let folder = folder.context("a package outside of the workspace")?.to_owned();
        Ok(Self { folder, manifest: text.parse()? })
    }

    fn is_named(&self, name: &str) -> bool {
        self.manifest.get("package").and_then(|package| package.get("name")).and_then(Toml::as_str)
            == Some(name)
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
    let Some((_, allowed)) =
        ALLOWED_DEPENDENCIES.iter().find(|(folder, _)| member.folder.starts_with(folder))
    else {
        report("a new crate: say in infra/xtask/src/tidy/dependencies.rs what it may depend on".to_owned());
        return violations;
    };
    for (name, declaration) in member.dependencies() {
        let is_ours = name.starts_with("tickover");
        // In tests, a crate may depend on one that depends on it. With a version, neither could be published first.
        // Cargo refuses to pack such a dependency outside of tests.
        let is_path = is_ours && declaration.get("path").is_some() && declaration.get("version").is_none();
        if declaration.get("workspace").is_none() && !is_path {
            report(format!("`{name}` is declared here; declare it at the root, use `workspace = true`"));
        }
        // In tests, a crate may also depend on itself with further features.
        let is_below = *allowed == ANYTHING || allowed.contains(&name.as_str()) || member.is_named(name);
        if is_ours && !is_below {
            report(format!("`{name}` is not below this crate; it may use {allowed:?}"));
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
    fn an_arrow_that_points_back_is_found() {
        let manifest = "[dependencies]\nserde.workspace = true\ntickover-service.workspace = true\n";
        let found = member("shared/core", manifest);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("shared/core/Cargo.toml: `tickover-service`"), "{found:?}");
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

    #[test]
    fn an_aws_crate_in_a_build_without_them_is_found() {
        let tree =
            "tickover v0.1.0 (/x)\nserde v1.0.0\naws-sdk-sqs v1.0.0\naws-sdk-sqs v1.0.0\naws-lc-rs v1.0.0\n";
        let build = Build { name: "demo", flags: &[] };
        assert_eq!(build.check(tree), ["demo compiles `aws-lc-rs`", "demo compiles `aws-sdk-sqs`"]);
    }

    #[test]
    fn a_crate_without_a_rule_is_found() {
        assert_eq!(member("shared/new", "").len(), 1);
    }
}

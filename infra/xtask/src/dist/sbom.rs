//! The list of everything that the released programs contain, as `CycloneDX` JSON.
//!
//! `cargo tree` says what cargo compiles for exactly these packages and features. Its output has the edges between
//! packages too. What only runs at compile time is not in it: build scripts and procedural macros.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use cyclonedx_bom::external_models::uri::Purl;
use cyclonedx_bom::models::component::Classification;
use cyclonedx_bom::models::dependency::{Dependencies, Dependency};
use cyclonedx_bom::models::hash::{Hash, HashAlgorithm, HashValue, Hashes};
use cyclonedx_bom::models::license::{LicenseChoice, Licenses};
use cyclonedx_bom::prelude::*;
use toml::{Table, Value};

use super::VERSION;
use crate::build::{FUNCTIONS, TOOL};
use crate::cargo::{cargo, output, root};

/// The release itself, in the list.
const RELEASE: &str = "tickover-release";

/// A package's name and version.
type Package = (String, String);

/// The packages with their licences, and who depends on whom.
#[derive(Default)]
struct Graph {
    licenses: BTreeMap<Package, String>,
    edges: BTreeMap<Package, BTreeSet<Package>>,
    /// Those with the released programs.
    roots: BTreeSet<Package>,
}

/// The list for programs that are built for these targets. `made_at` is its time, as RFC 3339.
pub(super) fn of(targets: &[&str], made_at: &str) -> Result<Vec<u8>> {
    let mut graph = Graph::default();
    for target in targets {
        // In two calls, as they are built: together, features of one would change what the other contains.
        graph.read(&tree(target, &FUNCTIONS, &[])?)?;
        graph.read(&tree(target, &[TOOL], &["--features", "aws"])?)?;
    }
    let bom = graph.list(&checksums()?, made_at)?;
    let checked = bom.validate_version(SpecVersion::V1_5);
    ensure!(checked.passed(), "the list of dependencies isn't valid CycloneDX: {checked:?}");
    let mut json = vec![];
    bom.output_as_json(&mut json, SpecVersion::V1_5)?;
    json.push(b'\n');
    Ok(json)
}

fn tree(target: &str, packages: &[&str], features: &[&str]) -> Result<String> {
    let mut tree = cargo(&["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "depth"]);
    tree.args(["--format", "\t{p}\t{l}", "--target", target]).args(features);
    for package in packages {
        tree.args(["--package", package]);
    }
    output(&mut tree)
}

/// The SHA-256 of each package from the registry. Those of this workspace have none.
fn checksums() -> Result<BTreeMap<Package, String>> {
    let lock: Table = fs::read_to_string(root().join("Cargo.lock"))?.parse()?;
    let packages = lock.get("package").and_then(Value::as_array).context("Cargo.lock lists no packages")?;
    let text = |package: &Value, key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
    let found = packages.iter().filter_map(|package| {
        Some(((text(package, "name")?, text(package, "version")?), text(package, "checksum")?))
    });
    Ok(found.collect())
}

impl Graph {
    /// Reads lines such as `2<tab>serde v1.0.0<tab>MIT`. The number is the depth. ` (*)` at the end means that the
    /// package's dependencies stand at another place.
    fn read(&mut self, tree: &str) -> Result<()> {
        let mut above: Vec<Package> = vec![];
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let mut parts = line.trim_end_matches(" (*)").split('\t');
            let (Some(depth), Some(package), Some(license), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                bail!("cargo tree printed `{line}`");
            };
            let (name, rest) = package.split_once(" v").with_context(|| format!("no version in `{line}`"))?;
            let version = rest.split(' ').next().unwrap_or(rest);
            let package = (name.to_owned(), version.to_owned());
            above.truncate(depth.parse().with_context(|| format!("no depth in `{line}`"))?);
            match above.last() {
                Some(parent) => {
                    self.edges.entry(parent.clone()).or_default().insert(package.clone());
                }
                None => {
                    self.roots.insert(package.clone());
                }
            }
            self.licenses.insert(package.clone(), license.to_owned());
            above.push(package);
        }
        Ok(())
    }

    fn list(&self, checksums: &BTreeMap<Package, String>, made_at: &str) -> Result<Bom> {
        let mut components = vec![];
        let mut dependencies = vec![depends(RELEASE, &self.roots)];
        for (package, license) in &self.licenses {
            let (name, version) = package;
            let kind = if self.roots.contains(package) {
                Classification::Application
            } else {
                Classification::Library
            };
            let mut component = Component::new(kind, name, version, Some(reference(package)));
            component.purl = Some(Purl::new("cargo", name, version)?);
            let license =
                SpdxExpression::parse_lax(license.clone()).with_context(|| format!("{name}: {license}"))?;
            component.licenses = Some(Licenses(vec![LicenseChoice::Expression(license)]));
            component.hashes = checksums.get(package).map(|checksum| {
                Hashes(vec![Hash { alg: HashAlgorithm::SHA_256, content: HashValue(checksum.clone()) }])
            });
            components.push(component);
            let below = self.edges.get(package).cloned().unwrap_or_default();
            dependencies.push(depends(&reference(package), &below));
        }
        let release =
            Component::new(Classification::Application, "tickover", VERSION, Some(RELEASE.to_owned()));
        let metadata = Metadata {
            timestamp: Some(DateTime::try_from(made_at.to_owned())?),
            component: Some(release),
            ..Metadata::default()
        };
        Ok(Bom {
            // It would be random, and the same sources give the same bytes.
            serial_number: None,
            metadata: Some(metadata),
            components: Some(Components(components)),
            dependencies: Some(Dependencies(dependencies)),
            spec_version: SpecVersion::V1_5,
            ..Bom::default()
        })
    }
}

fn depends(reference_of_one: &str, on: &BTreeSet<Package>) -> Dependency {
    Dependency {
        dependency_ref: reference_of_one.to_owned(),
        dependencies: on.iter().map(reference).collect(),
    }
}

fn reference((name, version): &Package) -> String {
    format!("{name}@{version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0\ttickover-tick v1.0.0 (/x y)\tMIT\n1\ta v2.0.0\tMIT/Apache-2.0\n2\tb v3.0.0\tISC\n1\tb v3.0.0\tISC (*)\n\n\
                        0\ttickover-cli v1.0.0 (/x)\tMIT\n1\ta v2.0.0\tMIT/Apache-2.0 (*)\n";

    fn package(name: &str, version: &str) -> Package {
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn the_graph_is_that_of_the_tree() {
        let mut graph = Graph::default();
        graph.read(TREE).unwrap();
        let [tick, tool] = ["tickover-tick", "tickover-cli"].map(|name| package(name, "1.0.0"));
        let (a, b) = (package("a", "2.0.0"), package("b", "3.0.0"));
        assert_eq!(graph.roots, BTreeSet::from([tick.clone(), tool.clone()]));
        let edges =
            [(tick, BTreeSet::from([a.clone(), b.clone()])), (tool, [a.clone()].into()), (a, [b].into())];
        assert_eq!(graph.edges, BTreeMap::from(edges));
        let unreadable = Graph::default().read("serde v1\tMIT");
        assert!(unreadable.unwrap_err().to_string().contains("cargo tree printed"));
    }

    #[test]
    fn the_list_has_the_real_dependencies_and_none_of_the_tests() {
        let list = of(&["x86_64-unknown-linux-gnu"], "2026-01-02T03:04:05+00:00").unwrap();
        let bom = Bom::parse_from_json(list.as_slice()).unwrap();
        let components = bom.components.unwrap().0;
        let find = |name: &str| components.iter().find(|component| component.name.to_string() == name);
        let serde = find("serde").unwrap();
        assert!(serde.hashes.is_some() && serde.licenses.is_some() && serde.purl.is_some());
        // The tool's feature `aws` and its database; the functions; what Lambda needs.
        for name in ["aws-sdk-sso", "libsqlite3-sys", "tickover-tick", "lambda_runtime"] {
            assert!(find(name).is_some(), "{name}");
        }
        // Of tests, of this program, and of the compiler.
        for name in ["dynoxide-rs", "proptest", "cyclonedx-bom", "syn", "tickover-macros"] {
            assert!(find(name).is_none(), "{name}");
        }
        let dependencies = bom.dependencies.unwrap().0;
        let release = dependencies.iter().find(|one| one.dependency_ref == RELEASE).unwrap();
        assert_eq!(release.dependencies.len(), FUNCTIONS.len() + 1);
    }
}

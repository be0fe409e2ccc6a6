//! Checks that `tickover-core` stays pure: it builds on its own, and none of its dependencies is a clock, randomness,
//! an async runtime or AWS.
//!
//! The crate is built alone: within the workspace, another crate's features would hide a mistake.

use anyhow::{Result, bail};

use crate::cargo::{cargo, output, succeed};

const CORE: &str = "tickover-core";

/// Crates that contain an async runtime, randomness, network or environment access.
const FORBIDDEN: &[&str] = &[
    "async-std",
    "fastrand",
    "getrandom",
    "hyper",
    "mio",
    "rand",
    "reqwest",
    "smol",
    "socket2",
    "tokio",
    "uuid",
];

/// Forbidden prefixes of names.
const FORBIDDEN_FAMILIES: &[&str] = &["aws-", "aws_", "rand_", "tokio-", "tickover-"];

/// The features of chrono that read the machine's clock or time zone.
const CHRONO_CLOCK: &[&str] = &["clock", "default", "iana-time-zone", "now", "wasmbind"];

pub(crate) fn run() -> Result<()> {
    succeed(&mut cargo(&["check", "--package", CORE, "--locked"]))?;
    let mut found = forbidden_crates(&tree("normal,build")?);
    found.extend(clock_features(&tree("normal,build,features")?));
    if !found.is_empty() {
        bail!("{CORE} is no longer pure: it depends on {}", found.join(", "));
    }
    Ok(())
}

/// All dependencies of the core on every platform, one in a line.
fn tree(edges: &str) -> Result<String> {
    let args =
        ["tree", "--package", CORE, "--target", "all", "--prefix", "none", "--locked", "--edges", edges];
    output(&mut cargo(&args))
}

fn forbidden_crates(tree: &str) -> Vec<String> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != CORE);
    let is_forbidden = |name: &&str| {
        FORBIDDEN.contains(name) || FORBIDDEN_FAMILIES.iter().any(|family| name.starts_with(family))
    };
    let mut found: Vec<_> = names.filter(is_forbidden).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

/// The lines for features read `chrono feature "clock"`.
fn clock_features(tree: &str) -> Vec<String> {
    let is_on = |feature: &&&str| tree.contains(&format!("chrono feature \"{feature}\""));
    CHRONO_CLOCK.iter().filter(is_on).map(|feature| format!("chrono's feature `{feature}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_and_the_aws_sdk_are_found_and_a_likeness_of_name_is_not() {
        let tree =
            "tickover-core v0.1.0 (/x)\ntokio v1.0.0\nrandomize v1.0.0\naws-config v1.0.0\ntokio v1.0.0 (*)";
        assert_eq!(forbidden_crates(tree), ["aws-config", "tokio"]);
    }

    #[test]
    fn the_clock_of_chrono_is_found() {
        let clean = "chrono feature \"alloc\"\nchrono feature \"serde\"\nchrono v0.4.45";
        assert!(clock_features(clean).is_empty());
        assert_eq!(clock_features("chrono feature \"now\""), ["chrono's feature `now`"]);
    }
}

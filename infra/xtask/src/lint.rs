//! `cargo xtask lint`: checks the infrastructure's templates with SAM and cfn-lint, both without access to AWS. It also
//! checks that the service records the metrics of the templates' alarms, that its functions allow recursive loops, and
//! that the emulators' files and the guides agree with the template.

mod emulators;
mod guides;
mod parts;
mod template;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::{root, succeed, target_dir, without_cargos_own};
use crate::test::away_from_aws;
use crate::{dist, python};

const TEMPLATE: &str = "template.yaml";
/// The others, which need no transform, so that SAM has nothing to add to cfn-lint.
const PLAIN: [&str; 3] = ["core.yaml", "worker.yaml", "nested.yaml"];
/// The prefix of our metrics' names.
const METRIC: &str = "tickover_";

/// Checks all templates. A warning is an error too.
pub(crate) fn run() -> Result<()> {
    check_metrics()?;
    check_version()?;
    template::check_loops()?;
    template::check_reports()?;
    parts::check()?;
    emulators::check()?;
    guides::check()?;
    let target = target_dir()?;
    let python = python::install(&target.join("sam"), &root().join("infra/tools/sam.txt"), "samcli")?;
    let tool = |name: &str| {
        let mut command = Command::new(python.with_file_name(name));
        without_cargos_own(&mut command).current_dir(root().join("infra")).stdin(Stdio::null());
        away_from_aws(&mut command).env("SAM_CLI_TELEMETRY", "0");
        // SAM would otherwise use a folder in the user's home.
        command.env("__SAM_CLI_APP_DIR", target.join("sam/home"));
        command
    };
    succeed(tool("cfn-lint").arg(TEMPLATE).args(PLAIN)).context("cfn-lint reported a problem")?;
    let made = made(&target.join("lint"))?;
    succeed(tool("cfn-lint").args(made)).context("cfn-lint reported a problem of a release's templates")?;
    succeed(tool("sam").args(["validate", "--lint", "--template-file", TEMPLATE]))
        .context("SAM reported a problem")
}

/// Writes the templates that a release would have into the folder, and returns their paths.
fn made(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = vec![];
    for (name, text) in dist::for_lint()? {
        let path = folder.join(name);
        let write =
            || fs::create_dir_all(path.parent().unwrap_or(folder)).and_then(|()| fs::write(&path, text));
        write().with_context(|| format!("could not write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Checks the version that a deployment says of itself, which the tool compares with its own.
fn check_version() -> Result<()> {
    let value = format!("Value: \"{}\"", env!("CARGO_PKG_VERSION"));
    for file in [template::FILE, parts::CORE] {
        let template = read(file)?;
        let parameter = template.split_once("  VersionParameter:\n").map_or("", |(_, rest)| rest);
        let parameter = parameter.split_once("\n\n").map_or(parameter, |(first, _)| first);
        ensure!(parameter.contains(&value), "{file}: VersionParameter doesn't have the workspace's version");
    }
    Ok(())
}

/// Checks the metrics of alarms: an alarm on a metric that the service doesn't record would never fire.
fn check_metrics() -> Result<()> {
    let recorded = read("shared/service/src/metric.rs")?;
    for file in [template::FILE, parts::CORE, parts::WORKER] {
        let template = read(file)?;
        let watched = metrics(&template);
        ensure!(!watched.is_empty(), "{file} has an alarm on none of our metrics");
        let unknown: Vec<&str> =
            watched.into_iter().filter(|name| !recorded.contains(&format!("\"{name}\""))).collect();
        ensure!(unknown.is_empty(), "{file} has alarms on unknown metrics: {}", unknown.join(", "));
    }
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("could not read {path}"))
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with(METRIC)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_watches_what_is_recorded() {
        let names =
            metrics("MetricName: tickover_a_total\n[\"tickover_b\", \"other\"] ${AWS::StackName}-tickover");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["tickover_a_total", "tickover_b"]);
        check_metrics().unwrap();
    }
}

//! Checks that the guides' commands exist: environments and parameters of `sam`, our own `cargo xtask`, and the tables of
//! the templates' parameters. And that the tools that users are told to install are those that continuous integration uses.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use tickover_tests::process::binary;

use crate::{parts, read, template};

const SAM: &str = "infra/samconfig.toml";
const PARAMETERS: &str = "infra/OPERATE.md";
/// Where continuous integration has its tools from.
const TOOLS: [&str; 2] = ["infra/tools/cargo-lambda.txt", "infra/tools/sam.txt"];
/// Where users have them from: the guide, and the pipeline of a new project.
const INSTALLED_BY: [&str; 2] = ["infra/PRODUCTION.md", PIPELINE];
/// The pipeline of a new project.
const PIPELINE: &str = "shared/cli/src/new/files/ci.yaml";
/// The pipeline of a release, and what it does in this order.
const RELEASE: &str = ".github/workflows/release.yaml";
const RELEASED: [&str; 3] = ["cargo xtask dist ", "actions/attest-build-provenance@", "gh release create "];
/// The length of a commit's name.
const COMMIT_DIGITS: usize = 40;

/// All guides that contain commands.
const GUIDES: [&str; 19] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/limits.md",
    "docs/messages.md",
    "docs/one-machine.md",
    "docs/operators.md",
    "docs/programs.md",
    "docs/steps-and-children.md",
    "docs/table.md",
    "docs/tests.md",
    "docs/time.md",
    "docs/workflows.md",
    "infra/COST.md",
    "infra/DEPLOY.md",
    "infra/OPERATE.md",
    "infra/PRODUCTION.md",
    "infra/README.md",
    "localstack/README.md",
];

fn check() -> Result<()> {
    let environments = read(SAM)?;
    let everywhere = all_parameters()?;
    for guide in GUIDES {
        for command in commands(guide)? {
            let words: Vec<&str> = command.split_whitespace().collect();
            let checked = match words.as_slice() {
                ["sam", ..] => check_sam(&words, &environments, &everywhere),
                ["cargo", "xtask", rest @ ..] => check_xtask(rest),
                _ => Ok(()),
            };
            checked.with_context(|| format!("{guide}: `{command}`"))?;
        }
    }
    let guide = read(PARAMETERS)?;
    for (file, text) in parts::all()? {
        check_table(&guide, file, &template::parameters(&text))?;
    }
    for tool in TOOLS {
        let pinned = read(tool)?;
        for file in INSTALLED_BY {
            check_version(&pinned, &read(file)?).with_context(|| format!("{file} and {tool}"))?;
        }
    }
    check_pipeline(&read(PIPELINE)?, env!("CARGO_PKG_RUST_VERSION")).context(PIPELINE)?;
    check_release(&read(RELEASE)?, env!("CARGO_PKG_RUST_VERSION")).context(RELEASE)
}

/// The pipeline of a release is as safe as every other one, and publishes nothing that isn't attested.
fn check_release(pipeline: &str, rust: &str) -> Result<()> {
    check_pipeline(pipeline, rust)?;
    let places = RELEASED.map(|part| pipeline.find(part));
    ensure!(places.is_sorted() && places[0].is_some(), "it doesn't do this in this order: {RELEASED:?}");
    for attested in ["tickover-*.tar", "target/dist/**/*"] {
        ensure!(pipeline.contains(&format!("\n            {attested}\n")), "{attested} isn't attested");
    }
    let (of_all, of_job) = pipeline.split_once("\njobs:").context("no jobs")?;
    ensure!(!of_all.contains(": write"), "each job may write");
    let may = of_job.contains("id-token: write") && of_job.contains("attestations: write");
    ensure!(may, "the job may not sign, or not store attestations");
    Ok(())
}

/// The pipeline names actions by commits, which nobody can replace, and installs the Rust that Tickover is tested with.
fn check_pipeline(pipeline: &str, rust: &str) -> Result<()> {
    for (_, action) in pipeline.lines().filter_map(|line| line.split_once("uses: ")) {
        let commit =
            action.split_once('@').map_or("", |(_, rest)| rest.split(' ').next().unwrap_or_default());
        let is_commit =
            commit.len() == COMMIT_DIGITS && commit.chars().all(|digit| digit.is_ascii_hexdigit());
        ensure!(is_commit, "{action} isn't named by a commit");
    }
    for (_, installed) in pipeline.lines().filter_map(|line| line.split_once("rustup toolchain install ")) {
        ensure!(installed.starts_with(&format!("{rust} ")), "it installs Rust {installed}, and not {rust}");
        let is_used = installed.ends_with(&format!("&& rustup default {rust}"));
        ensure!(is_used, "it doesn't use the Rust that it installs");
    }
    Ok(())
}

/// The text installs the first package of these requirements in the same version.
fn check_version(pinned: &str, text: &str) -> Result<()> {
    let pin = pinned.lines().find(|line| !line.starts_with('#')).context("no requirements")?;
    let (name, version) = pin.split_once("==").context("no version")?;
    let install = format!("{name}==");
    let mut places = text.split(&install).skip(1).peekable();
    ensure!(places.peek().is_some(), "{name} isn't installed");
    for place in places {
        let installed = place.split(|one: char| !one.is_ascii_digit() && one != '.').next();
        ensure!(installed == Some(version), "{name} is {version} and {installed:?}");
    }
    Ok(())
}

/// The parameters of all templates. Those of the same name have the same values.
fn all_parameters() -> Result<Vec<template::Parameter>> {
    let mut all = vec![];
    for file in parts::FILES {
        all.extend(template::parameters(&read(file)?));
    }
    Ok(all)
}

/// The commands of a guide: the lines of its code blocks, and code within its sentences.
fn commands(guide: &str) -> Result<Vec<String>> {
    let text = read(guide)?;
    let mut found: Vec<String> = vec![];
    for block in text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n")) {
        let joined = block.replace("\\\n", " ");
        let lines = joined.lines().flat_map(|line| line.split(" && ")).flat_map(|line| line.split(" | "));
        found.extend(lines.map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned()));
    }
    let prose: String = text.split("```").step_by(2).collect();
    let quoted = prose.split('`').skip(1).step_by(2).flat_map(|quoted| quoted.split(" && "));
    found.extend(quoted.map(|quoted| quoted.split_whitespace().collect::<Vec<_>>().join(" ")));
    Ok(found)
}

/// The environment and the parameters in a `sam` command exist, and the values are allowed.
fn check_sam(words: &[&str], environments: &str, parameters: &[template::Parameter]) -> Result<()> {
    if let Some(name) = words.iter().skip_while(|word| **word != "--config-env").nth(1) {
        let is_there = *name == "NAME" || environments.contains(&format!("\n[{name}.global.parameters]\n"));
        ensure!(is_there, "{SAM} has no environment {name}");
    }
    let overrides = words.iter().skip_while(|word| **word != "--parameter-overrides").skip(1);
    for given in overrides.take_while(|word| word.contains('=')) {
        let (name, value) = given.split_once('=').unwrap_or_default();
        if (name, value) == ("Name", "value") {
            continue;
        }
        check_value(name, value, parameters)?;
    }
    Ok(())
}

fn check_value(name: &str, value: &str, parameters: &[template::Parameter]) -> Result<()> {
    let parameter = parameters.iter().find(|parameter| parameter.name == name);
    let allowed = &parameter.with_context(|| format!("no parameter {name}"))?.allowed;
    let is_allowed = allowed.is_empty() || allowed.iter().any(|known| known == value);
    ensure!(is_allowed, "{name} can't be {value}, only one of {allowed:?}");
    Ok(())
}

/// The command is one of ours. If it has subcommands, the subcommand exists too.
fn check_xtask(words: &[&str]) -> Result<()> {
    let mut help = Command::new(binary("xtask"));
    help.arg("help");
    for word in words {
        // `up|down` stands for two commands; the first is checked.
        let word = word.split('|').next().unwrap_or(word);
        let said = help.arg(word).output()?;
        ensure!(said.status.success(), "there is no command {word}");
        if !String::from_utf8_lossy(&said.stdout).contains("\nCommands:\n") {
            break;
        }
    }
    Ok(())
}

/// The guide's table of a template contains exactly the template's parameters.
fn check_table(guide: &str, file: &str, parameters: &[template::Parameter]) -> Result<()> {
    let name = file.trim_start_matches("infra/");
    let begin = format!("\n| of `{name}` | default | |\n");
    let (_, table) = guide.split_once(&begin).with_context(|| format!("no table of {name}"))?;
    let (table, _) = table.split_once("\n\n").unwrap_or((table, ""));
    ensure!(!parameters.is_empty(), "{file} has no parameters");
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    let named: String =
        table.split('`').skip(1).step_by(2).fold(String::from(" "), |all, word| all + word + " ");
    for parameter in parameters {
        ensure!(
            named.contains(&format!(" {} ", parameter.name)),
            "{PARAMETERS}: {} is missing in the table of {name}",
            parameter.name
        );
    }
    for (names, _) in cells {
        for name in names.split(['`', ',', ' ']).filter(|name| !name.is_empty()) {
            let is_there = parameters.iter().any(|parameter| parameter.name == name);
            ensure!(is_there, "{PARAMETERS}: {file} has no parameter {name}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipeline_of_a_new_project_has_fixed_actions_and_the_tested_rust() {
        let pipeline = read(PIPELINE).unwrap();
        let rust = env!("CARGO_PKG_RUST_VERSION");
        check_pipeline(&pipeline, rust).unwrap();
        check_pipeline(&pipeline, "1.0").unwrap_err();
        for (from, to) in [
            ("actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803", "actions/checkout@v6"),
            ("toolchain install 1.95", "toolchain install stable"),
            ("&& rustup default 1.95", ""),
        ] {
            assert!(pipeline.contains(from), "{from}");
            check_pipeline(&pipeline.replace(from, to), rust).unwrap_err();
        }
    }

    #[test]
    fn a_release_is_attested_before_it_is_published() {
        let pipeline = read(RELEASE).unwrap();
        let rust = env!("CARGO_PKG_RUST_VERSION");
        check_release(&pipeline, rust).unwrap();
        for (from, to) in [
            (
                "attest-build-provenance@a2bbfa25375fe432b6a289bc6b6cd05ecd0c4c32",
                "attest-build-provenance@v4",
            ),
            ("uses: actions/attest-build-provenance@", "uses: actions/attest@"),
            ("      - run: cargo xtask dist ", "      - run: gh release create && cargo xtask dist "),
            ("            target/dist/**/*\n", ""),
            ("      attestations: write\n", ""),
            ("  contents: read\n", "  contents: write\n"),
        ] {
            assert!(pipeline.contains(from), "{from}");
            check_release(&pipeline.replacen(from, to, 1), rust).unwrap_err();
        }
    }

    #[test]
    fn the_guides_name_commands_environments_and_parameters_that_exist() {
        check().unwrap();
        let parameters = all_parameters().unwrap();
        let environments = read(SAM).unwrap();
        let sam = |command: &str| {
            check_sam(&command.split_whitespace().collect::<Vec<_>>(), &environments, &parameters)
        };
        sam("sam deploy --config-env local --parameter-overrides ApiKind=FunctionUrl TickSource=Rule")
            .unwrap();
        for wrong in [
            "sam build --config-env elsewhere",
            "sam deploy --parameter-overrides Nothing=1",
            "sam deploy --parameter-overrides TickSource=Sun",
        ] {
            sam(wrong).unwrap_err();
        }
        check_version("# why\ntool==1.2\nits-part==3", "install tool==1.2 && run").unwrap();
        for wrong in [
            "install tool==1.20",
            "install tool==1.2 && install tool==1.1",
            "install tool",
            "install its-part==3",
        ] {
            check_version("# why\ntool==1.2\nits-part==3", wrong).unwrap_err();
        }
        check_xtask(&["localstack", "sideways"]).unwrap_err();
        check_xtask(&["localstack", "up"]).unwrap();
        let guide = read(PARAMETERS).unwrap();
        for (file, text) in parts::all().unwrap() {
            let parameters = template::parameters(&text);
            for wrong in [("`System`", "`Systems`"), ("`AlarmTopicArn`", "`AlarmTopicArn`, `More`")] {
                check_table(&guide.replace(wrong.0, wrong.1), file, &parameters).unwrap_err();
            }
        }
    }
}

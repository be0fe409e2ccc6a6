//! A release's templates, made from `infra/core.yaml` and `infra/worker.yaml`.
//!
//! At the top of the release's folder are those for its archives in an S3 bucket, named by parameters. In each
//! architecture's folder are those for the archives beside them, which `sam deploy` and `aws cloudformation package`
//! upload.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::{PREFIX, VERSION};
use crate::build::{Architecture, FUNCTIONS};
use crate::cargo::root;

/// The templates' names, here and in a release.
const TEMPLATES: [&str; 2] = ["core.yaml", "worker.yaml"];
/// Where a function's sources are, in a template.
const CODE: &str = "      Code: ../functions/";
const FUNCTION: &str = "    Type: AWS::Lambda::Function\n";
const BEGIN: &str = "AWSTemplateFormatVersion:";
/// It lets cfn-lint accept folders and files as code, and is removed where there are none.
const LINT: &str = "Metadata:\n  # The folders in `Code` become archives before the deployment.\n  cfn-lint: { config: { ignore_checks: [W3002] } }\n\n";
const ARCHITECTURE: &str =
    "  Architecture:\n    Type: String\n    Default: arm64\n    AllowedValues: [arm64, x86_64]\n";

const CORE_HEADER: &str = "\
# The engine of Tickover VERSION. Its archives are in an S3 bucket of the stack's region:
#
#   aws s3 cp --recursive . s3://BUCKET/tickover/VERSION/
#   aws cloudformation deploy --template-file core.yaml --s3-bucket BUCKET --stack-name tickover \\
#     --capabilities CAPABILITY_IAM --parameter-overrides CodeBucket=BUCKET
#
# Made from infra/core.yaml by `cargo xtask dist`.
";
const BUCKET: &str = "  CodeBucket:
    Type: String
    Description: The S3 bucket with the archives, in the stack's region.
";
const CORE_PARAMETERS: &str = "  CodePrefix:
    Type: String
    Default: tickover/
    AllowedPattern: (.*/)?
    ConstraintDescription: It ends with a slash, or is empty.
    Description: What the keys of the archives begin with, before the version.
";
const WORKER_HEADER: &str = "\
# One worker of a system of Tickover VERSION. Its archive is in an S3 bucket of the stack's region: your own, with a
# program `bootstrap`, or the example's, `tickover/VERSION/ARCHITECTURE/worker.zip`. A new archive needs a new key, or the
# deployment changes nothing.
#
#   aws cloudformation deploy --template-file worker.yaml --stack-name tickover-worker-orders \\
#     --capabilities CAPABILITY_IAM --parameter-overrides CodeBucket=BUCKET CodeKey=KEY
#
# Made from infra/worker.yaml by `cargo xtask dist`.
";
const WORKER_PARAMETERS: &str = "  CodeKey:
    Type: String
    AllowedPattern: .+
    Description: The key of the function's archive in that bucket.
";
const FOLDER_HEADER: &str = "\
# A template of Tickover VERSION, with the archives of this folder:
#
#   sam deploy --template-file TEMPLATE --stack-name NAME --resolve-s3 --capabilities CAPABILITY_IAM
#
# `aws cloudformation package` and `deploy` do the same. Made from infra/TEMPLATE by `cargo xtask dist`.
";

/// The path of an archive in a release's folder.
pub(super) fn archive(architecture: &str, function: &str) -> String {
    format!("{architecture}/{function}.zip")
}

/// All templates of a release for these architectures, with their paths in its folder.
pub(super) fn of(architectures: &[Architecture]) -> Result<Vec<(String, String)>> {
    let mut files = vec![];
    for name in TEMPLATES {
        let path = root().join("infra").join(name);
        let source =
            fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        let made =
            in_bucket(name, &source, architectures).with_context(|| format!("infra/{name}, in a bucket"))?;
        files.push((name.to_owned(), made));
        for architecture in architectures {
            let made = in_folder(name, &source, *architecture)
                .with_context(|| format!("infra/{name}, in a folder"))?;
            files.push((format!("{}/{name}", architecture.name()), made));
        }
    }
    Ok(files)
}

/// The templates of a release for all architectures, for cfn-lint.
pub(crate) fn for_lint() -> Result<Vec<(String, String)>> {
    of(&Architecture::ALL)
}

fn in_bucket(name: &str, source: &str, architectures: &[Architecture]) -> Result<String> {
    let (header, parameters, key): (_, _, fn(&str) -> String) = match name {
        "core.yaml" => (CORE_HEADER, CORE_PARAMETERS, |function| {
            let archive = archive("${Architecture}", function);
            format!("!Sub \"${{CodePrefix}}{VERSION}/{archive}\"")
        }),
        _ => (WORKER_HEADER, WORKER_PARAMETERS, |_| "!Ref CodeKey".to_owned()),
    };
    let code = |function: &str| format!("{{ S3Bucket: !Ref CodeBucket, S3Key: {} }}", key(function));
    let text = with_architectures(&once(&with_code(source, code)?, LINT, "")?, architectures)?;
    let text = once(&text, "  Architecture:\n", &format!("{BUCKET}{parameters}  Architecture:\n"))?;
    with_header(&text, name, header)
}

fn in_folder(name: &str, source: &str, architecture: Architecture) -> Result<String> {
    let text = with_code(source, |function| format!("{function}.zip"))?;
    let text = once(
        &text,
        "The folders in `Code` become archives before",
        "The archives in `Code` are uploaded before",
    )?;
    with_header(&with_architectures(&text, &[architecture])?, name, FOLDER_HEADER)
}

/// Each function's code, in place of its sources and of how SAM builds them.
fn with_code(source: &str, code: impl Fn(&str) -> String) -> Result<String> {
    let mut text = source.to_owned();
    let mut count = 0;
    for package in FUNCTIONS {
        let function = super::short(package)?;
        let line = format!("{CODE}{function}\n");
        if !text.contains(&line) {
            continue;
        }
        text = once(&text, &line, &format!("      Code: {}\n", code(function)))?;
        let build = format!(
            "    Metadata:\n      BuildMethod: rust-cargolambda\n      BuildProperties: {{ Binary: {PREFIX}{function} }}\n"
        );
        text = once(&text, &build, "")?;
        count += 1;
    }
    ensure!(count > 0, "no function has the form `{}NAME`", CODE.trim());
    let functions = source.matches(FUNCTION).count();
    ensure!(count == functions, "{count} of {functions} functions have the form `{}NAME`", CODE.trim());
    Ok(text)
}

/// Only the architectures with archives. The first is the default.
fn with_architectures(text: &str, architectures: &[Architecture]) -> Result<String> {
    let names: Vec<&str> = architectures.iter().map(|architecture| architecture.name()).collect();
    let default = names.first().context("no architecture")?;
    let list = names.join(", ");
    let parameter =
        format!("  Architecture:\n    Type: String\n    Default: {default}\n    AllowedValues: [{list}]\n");
    once(text, ARCHITECTURE, &parameter)
}

/// This comment in place of the one at the template's beginning.
fn with_header(text: &str, name: &str, header: &str) -> Result<String> {
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("no {BEGIN}"))?;
    ensure!(before.lines().all(|line| line.starts_with('#')), "something stands before {BEGIN}");
    let header = header.replace("VERSION", VERSION).replace("TEMPLATE", name);
    Ok(format!("{header}{BEGIN}{rest}"))
}

/// Replaces a part that must be there exactly once.
fn once(text: &str, from: &str, to: &str) -> Result<String> {
    ensure!(text.matches(from).count() == 1, "this isn't there exactly once: {from}");
    Ok(text.replacen(from, to, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str) -> String {
        fs::read_to_string(root().join("infra").join(name)).unwrap()
    }

    fn made(path: &str) -> String {
        let files = of(&[Architecture::X86]).unwrap();
        files.into_iter().find(|(made, _)| made == path).unwrap().1
    }

    #[test]
    fn every_function_of_the_core_is_an_archive_in_the_bucket() {
        let core = made("core.yaml");
        for function in ["schedule", "claim", "complete", "tick", "gateway"] {
            let key = format!("${{CodePrefix}}{VERSION}/${{Architecture}}/{function}.zip");
            let line = format!("      Code: {{ S3Bucket: !Ref CodeBucket, S3Key: !Sub \"{key}\" }}\n");
            assert_eq!(core.matches(&line).count(), 1, "{function}");
        }
        assert_eq!(core.matches("      Code: ").count(), 5);
        assert!(core.contains(CORE_PARAMETERS) && made("worker.yaml").contains(WORKER_PARAMETERS));
        assert!(
            made("worker.yaml").contains("      Code: { S3Bucket: !Ref CodeBucket, S3Key: !Ref CodeKey }\n")
        );
    }

    #[test]
    fn every_function_is_an_archive_beside_its_template() {
        for (path, functions) in [
            ("x86_64/core.yaml", &["schedule", "claim", "complete", "tick", "gateway"][..]),
            ("x86_64/worker.yaml", &["worker"]),
        ] {
            let text = made(path);
            for function in functions {
                assert_eq!(
                    text.matches(&format!("      Code: {function}.zip\n")).count(),
                    1,
                    "{path}: {function}"
                );
            }
            assert_eq!(text.matches("      Code: ").count(), functions.len(), "{path}");
        }
    }

    #[test]
    fn only_the_code_and_the_architecture_differ() {
        let form = |text: &str| {
            let (_, rest) = text.split_once(BEGIN).unwrap();
            let code = |line: &&str| {
                let line = line.trim_start();
                ![
                    "Code",
                    "BuildMethod:",
                    "BuildProperties:",
                    "Default: arm64",
                    "Default: x86_64",
                    "AllowedValues: [arm64",
                    "AllowedValues: [x86_64",
                ]
                .iter()
                .any(|begin| line.starts_with(begin))
            };
            rest.lines().filter(code).map(str::to_owned).collect::<Vec<_>>()
        };
        // Of what is left, the folder's form lacks one line a function, and words one comment differently.
        for (name, functions) in [("core.yaml", 5), ("worker.yaml", 1)] {
            let mut ours = form(&source(name));
            let mut theirs = form(&made(&format!("x86_64/{name}")));
            ours.retain(|line| line != "    Metadata:" && !line.contains("in `Code`"));
            theirs.retain(|line| !line.contains("in `Code`"));
            assert_eq!(ours, theirs, "{name}");
            assert_eq!(source(name).matches("\n    Metadata:\n").count(), functions);
        }
    }

    #[test]
    fn a_release_offers_only_the_architectures_it_has() {
        let only = "    Default: x86_64\n    AllowedValues: [x86_64]\n";
        for path in ["core.yaml", "worker.yaml", "x86_64/core.yaml", "x86_64/worker.yaml"] {
            assert!(made(path).contains(only), "{path}");
        }
        let all = of(&Architecture::ALL).unwrap();
        let find = |path: &str| &all.iter().find(|(made, _)| made == path).unwrap().1;
        assert!(find("core.yaml").contains(ARCHITECTURE));
        assert!(find("arm64/core.yaml").contains("    Default: arm64\n    AllowedValues: [arm64]\n"));
    }

    #[test]
    fn a_template_of_another_shape_is_refused() {
        let core = source("core.yaml");
        for (from, to) in [
            ("      Code: ../functions/tick\n", "      Code: ../functions/other\n"),
            ("      Code: ../functions/tick\n", "      CodeUri: ../functions/tick\n"),
            ("Binary: tickover-tick", "Binary: tick"),
            ("    AllowedValues: [arm64, x86_64]\n", "    AllowedValues: [x86_64, arm64]\n"),
            ("  cfn-lint: { config", "  cfn-lint: { settings"),
            ("AWSTemplateFormatVersion:", "Transform: x\nAWSTemplateFormatVersion:"),
        ] {
            let changed = core.replacen(from, to, 1);
            assert_ne!(changed, core, "{from}");
            in_bucket("core.yaml", &changed, &Architecture::ALL).expect_err(from);
        }
        in_folder("core.yaml", &core.replace("The folders in `Code`", "Those"), Architecture::X86)
            .unwrap_err();
        in_bucket("core.yaml", &core, &Architecture::ALL).unwrap();
    }
}

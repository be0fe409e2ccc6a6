//! The files of a new project, as texts with markers such as `{{name}}`.

use anyhow::{Context as _, bail, ensure};

/// The template of a worker's stack, which is this repository's own: a link to `infra/worker.yaml`. A published crate has
/// only the files in its folder, and cargo puts the link's target among them.
const STACK: &str = include_str!("files/worker.yaml");
/// Where the template's first comment turns to this repository's folder, and where the comment ends.
const STACK_COMMENT: (&str, &str) = ("# Like core.yaml, ", "AWSTemplateFormatVersion:");
/// What a project's `worker.yaml` has (second) in place of parts of this repository's (first). Its function is built with
/// cargo-lambda, because `sam build` can't choose a crate's features.
const STACK_CHANGES: &[(&str, &str)] = &[
    ("    Default: orders\n", "    Default: {{name}}\n"),
    (
        "    Metadata:\n      BuildMethod: rust-cargolambda\n      BuildProperties: { Binary: tickover-worker }\n",
        "",
    ),
    ("      Code: ../functions/worker\n", "      Code: target/lambda/{{name}}\n"),
];

/// Each file's path in the project, and its text.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("files/manifest.toml")),
    ("src/lib.rs", include_str!("files/lib.rs")),
    ("src/main.rs", include_str!("files/main.rs")),
    ("tests/fulfil.rs", include_str!("files/tests.rs")),
    ("samconfig.toml", include_str!("files/samconfig.toml")),
    ("README.md", include_str!("files/readme.md")),
    ("clippy.toml", include_str!("files/clippy.toml")),
    (".cargo/config.toml", include_str!("files/cargo_config.toml")),
    (".github/workflows/ci.yaml", include_str!("files/ci.yaml")),
    (".gitignore", include_str!("files/gitignore")),
];

/// The files, with these values in place of their markers.
pub(super) fn of(values: &[(&str, &str)]) -> anyhow::Result<Vec<(&'static str, String)>> {
    let filled = FILES.iter().map(|(path, text)| {
        let text = fill(text, values).with_context(|| format!("the template of {path}"))?;
        Ok((*path, text))
    });
    let mut files = filled.collect::<anyhow::Result<Vec<_>>>()?;
    files.push(("worker.yaml", fill(&stack()?, values).context("the template of worker.yaml")?));
    Ok(files)
}

/// The template of a project's stack, with markers.
fn stack() -> anyhow::Result<String> {
    let (begin, end) = STACK_COMMENT;
    let parts = STACK.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let (before, after) =
        parts.with_context(|| format!("infra/worker.yaml has no comment from {begin:?} to {end}"))?;
    let mut text = format!("{before}# README.md has the commands that build and deploy it.\n{end}{after}");
    for (ours, theirs) in STACK_CHANGES {
        ensure!(text.matches(ours).count() == 1, "infra/worker.yaml has not exactly once: {ours}");
        text = text.replace(ours, theirs);
    }
    Ok(text)
}

/// Replaces each marker by its value. A marker has only lower-case letters between its braces: the expressions of
/// pipelines and templates (`${{ github.ref }}`, `{{resolve:…}}`) stay as they are.
fn fill(text: &str, values: &[(&str, &str)]) -> anyhow::Result<String> {
    let mut filled = String::with_capacity(text.len());
    let mut parts = text.split("{{");
    filled.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let marker = part.split_once("}}").filter(|(name, _)| is_marker(name));
        let Some((name, rest)) = marker else {
            filled.push_str("{{");
            filled.push_str(part);
            continue;
        };
        let Some((_, value)) = values.iter().find(|(known, _)| *known == name) else {
            bail!("{{{{{name}}}}} has no value");
        };
        filled.push_str(value);
        filled.push_str(rest);
    }
    Ok(filled)
}

fn is_marker(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_replaced_once_and_expressions_stay() {
        let values = [("name", "orders"), ("source", "git = \"{{name}}\"")];
        assert_eq!(fill("{{name}}, { {{source}} }", &values).unwrap(), "orders, { git = \"{{name}}\" }");
        for kept in ["${{ vars.ROLE }}", "{{resolve:ssm:x}}", "{{", "}} {{}} {{Name}}"] {
            assert_eq!(fill(kept, &values).unwrap(), kept);
        }
    }

    #[test]
    fn a_projects_stack_has_its_queue_and_its_code() {
        let text = fill(&stack().unwrap(), &[("name", "my-shop")]).unwrap();
        for part in ["Default: my-shop\n", "Code: target/lambda/my-shop\n", "{{resolve:ssm:"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        for left_out in ["functions/worker", "BuildMethod", "sam build"] {
            assert!(!text.contains(left_out), "{left_out} in {text}");
        }
    }

    #[test]
    fn a_marker_without_a_value_is_an_error() {
        assert_eq!(fill("a {{nmae}}", &[("name", "x")]).unwrap_err().to_string(), "{{nmae}} has no value");
    }
}

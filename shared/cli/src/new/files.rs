//! The files of a new project, as texts with markers such as `{{name}}`.

use anyhow::{Context as _, bail};

/// Each file's path in the project, and its text.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("files/manifest.toml")),
    ("src/lib.rs", include_str!("files/lib.rs")),
    ("src/main.rs", include_str!("files/main.rs")),
    ("tests/fulfil.rs", include_str!("files/tests.rs")),
    ("README.md", include_str!("files/readme.md")),
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
    filled.collect()
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
    fn a_marker_without_a_value_is_an_error() {
        assert_eq!(fill("a {{nmae}}", &[("name", "x")]).unwrap_err().to_string(), "{{nmae}} has no value");
    }
}

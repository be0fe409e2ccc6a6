//! The compiler's errors for wrong attributes and functions. Each file under `errors` doesn't compile. The `.txt` file beside
//! it has the expected errors: of each the line and the column, what it says, its label, and what it says to do.
//!
//! The files are compiled with what a build of the workspace's tests has made already. To write the expected errors anew,
//! set `TICKOVER_TEST_WRITE=1`.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![expect(clippy::disallowed_methods, reason = "a switch of this test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const WRITE: &str = "TICKOVER_TEST_WRITE";

/// The arguments of the compiler by which the files find crates, as they are built with the whole workspace.
fn crates() -> Vec<String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--locked", "--workspace", "--features", "tickover-cli/aws"]);
    let output = cargo.args(["--test", "errors", "--message-format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let built: Vec<Value> = json(&output.stdout).collect();
    let arguments = |name: &str| {
        let of_name = built.iter().filter(|message| message["target"]["name"] == name);
        // What is built for macros has fewer features.
        let library = of_name.max_by_key(|message| message["features"].as_array().map(Vec::len)).unwrap();
        let file = library["filenames"][0].as_str().unwrap();
        let folder = Path::new(file).parent().unwrap().display();
        [format!("--extern={name}={file}"), format!("-Ldependency={folder}")]
    };
    ["tickover", "serde"].map(arguments).concat()
}

/// A value in each line, of those that have one.
fn json(lines: &[u8]) -> impl Iterator<Item = Value> {
    lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// What the compiler says about a file.
fn errors(file: &Path, crates: &[String]) -> String {
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--error-format=json"]).args(crates);
    let said = rustc.arg("--out-dir").arg(env!("CARGO_TARGET_TMPDIR")).arg(file).output().unwrap();
    assert!(!said.status.success(), "{} compiles", file.display());
    json(&said.stderr).filter(|message| message["level"] == "error").map(|error| lines(&error)).collect()
}

/// An error as the files have it; nothing for the compiler's last one, which only counts them.
fn lines(error: &Value) -> String {
    let spans = error["spans"].as_array().unwrap();
    let Some(span) = spans.iter().find(|span| span["is_primary"] == true) else { return String::new() };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut lines =
        vec![format!("{}:{}: {}", span["line_start"], span["column_start"], text(&error["message"]))];
    lines.extend(span["label"].as_str().map(|label| format!("    {label}")));
    for child in error["children"].as_array().unwrap() {
        let by = child["spans"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|span| span["suggested_replacement"].as_str());
        let by = by.map(|by| format!(" `{}`", by.trim())).collect::<Vec<_>>().concat();
        lines.push(format!("    {}: {}{by}", text(&child["level"]), text(&child["message"])));
    }
    lines.join("\n") + "\n"
}

#[test]
fn mistakes_are_compile_errors_that_say_what_to_write_instead() {
    let crates = crates();
    let files = fs::read_dir("tests/errors").unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|kind| kind == "rs")).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let (found, expected) = (errors(&file, &crates), file.with_extension("txt"));
        if std::env::var_os(WRITE).is_some() {
            fs::write(&expected, &found).unwrap();
        }
        let expected = fs::read_to_string(expected).unwrap_or_default();
        assert!(found == expected, "{} has these errors:\n{found}\nand not\n{expected}", file.display());
    }
}

//! `tickover new`: a project of the user's own. `cargo xtask ci` builds, tests and runs one; here are its files, and
//! what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use tickover_tests::process::{Ended, Process, binary};
use tokio::process::Command;

/// Runs `tickover new ARGS` in this folder.
async fn new_in(folder: &Path, args: &[&str]) -> Ended {
    let mut command = Command::new(binary("tickover"));
    command.arg("new").args(args).current_dir(folder);
    Process::from_command(&mut command).expect("a process").ended().await.expect("an end")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// All files of a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let text = fs::read_to_string(&path).expect("text");
                found.insert(path.strip_prefix(folder).expect("a path below").to_owned(), text);
            }
        }
    }
    found
}

/// What cargo reads in a project's manifest.
async fn package(project: &Path) -> Value {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(project);
    let output = cargo.output().await.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"][0].clone()
}

/// The package's dependencies on Tickover: its code's and its tests'.
fn on_tickover(package: &Value) -> Vec<&Value> {
    let dependencies = package["dependencies"].as_array().expect("dependencies");
    dependencies.iter().filter(|dependency| dependency["name"] == "tickover").collect()
}

/// The root of this repository.
fn checkout() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/..")
}

#[tokio::test]
async fn a_new_project_has_its_files_its_name_and_no_marker() {
    let folder = folder();
    let ended = new_in(folder.path(), &["my-shop"]).await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 4, "{}", ended.stdout);
    for said in ["created my-shop", "git init", "cd my-shop", "cargo test", "cargo run"] {
        assert!(ended.stdout.contains(said), "{said} in {}", ended.stdout);
    }
    let files = files(&folder.path().join("my-shop"));
    let has = |path: &str, text: &str| {
        let found = files.get(Path::new(path)).unwrap_or_else(|| panic!("no {path}"));
        assert!(found.contains(text), "{text:?} in {path}:\n{found}");
    };
    has("Cargo.toml", "name = \"my-shop\"");
    has("src/lib.rs", "queue = \"my-shop\"");
    has("src/main.rs", "use my_shop::{");
    has("tests/fulfil.rs", "with_each_death");
    has("README.md", "# my-shop\n");
    has("README.md", "`cargo install --locked --features aws tickover-cli`");
    has("clippy.toml", "std::time::SystemTime::now");
    has("worker.yaml", "Default: my-shop\n");
    has("samconfig.toml", "stack_name = \"my-shop-prod\"");
    has(".gitignore", "/target\n");
    has(".cargo/config.toml", "[env]");
    has(".github/workflows/ci.yaml", "${{ vars.AWS_ROLE }}");
    // Variables of an environment aren't known where a job's condition is decided.
    has(".github/workflows/ci.yaml", "vars.DEPLOY == 'true'");
    for (path, text) in &files {
        // An expression of the pipeline has `$` before it, and a reference of the stack `resolve` after it.
        let is_marker = |at: usize| !text[..at].ends_with('$') && !text[at..].starts_with("{{resolve:");
        let is_left = text.match_indices("{{").any(|(at, _)| is_marker(at));
        assert!(!is_left, "a marker in {}:\n{text}", path.display());
    }
}

#[tokio::test]
async fn a_new_project_depends_on_a_version_a_checkout_or_a_repository() {
    let folder = folder();
    let forms: [(&str, &[&str]); 4] = [
        ("version", &[]),
        ("path", &["--path", checkout()]),
        ("git", &["--git", "https://example.com/tickover"]),
        ("rev", &["--git", "https://example.com/tickover", "--rev", "0a1b2c"]),
    ];
    for (form, args) in forms {
        let into = folder.path().join(form);
        let into = into.to_str().expect("UTF-8");
        let ended = new_in(folder.path(), &[&["orders", "--into", into], args].concat()).await;
        assert!(ended.status.success(), "{ended:?}");
        let package = package(Path::new(into)).await;
        assert_eq!(package["name"], "orders");
        let found = on_tickover(&package);
        assert_eq!(found.len(), 2, "{package}");
        for dependency in found {
            let text = |field: &str| dependency[field].as_str().unwrap_or_default().to_owned();
            match form {
                "version" => assert_eq!(text("req"), "^0.1"),
                "path" => assert!(text("path").ends_with("/shared/sdk"), "{dependency}"),
                "git" => assert_eq!(text("source"), "git+https://example.com/tickover"),
                _ => assert_eq!(text("source"), "git+https://example.com/tickover?rev=0a1b2c"),
            }
        }
    }
}

/// Without the project's dependencies, which `cargo xtask ci` builds: the settings alone.
#[tokio::test]
async fn the_lints_of_a_new_project_refuse_clocks_and_sleeps_and_say_what_to_write_instead() {
    let folder = folder();
    assert!(new_in(folder.path(), &["my-shop"]).await.status.success());
    let project = folder.path().join("my-shop");
    let manifest = "[package]\nname = \"my-shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(project.join("Cargo.toml"), manifest).expect("written");
    fs::remove_file(project.join("src/main.rs")).expect("removed");
    fs::remove_dir_all(project.join("tests")).expect("removed");
    let linted = async |code: &str| {
        fs::write(project.join("src/lib.rs"), code).expect("written");
        let mut cargo = Command::new("cargo");
        cargo.args(["clippy", "--quiet", "--offline", "--", "-D", "warnings"]).current_dir(&project);
        // The target folder of these tests isn't the project's.
        cargo.env_remove("CARGO_TARGET_DIR");
        let output = cargo.output().await.expect("cargo runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (call, instead) in [
        ("std::time::SystemTime::now()", "in a workflow: ctx.now()"),
        ("std::thread::sleep(std::time::Duration::ZERO)", "in a workflow: ctx.sleep()"),
    ] {
        let (is_clean, said) = linted(&format!("pub fn call() {{\n    let _ = {call};\n}}\n")).await;
        assert!(!is_clean && said.contains(instead), "{call}: {said}");
    }
    let (is_clean, said) = linted("pub fn call() {}\n").await;
    assert!(is_clean, "{said}");
}

#[tokio::test]
async fn a_folder_with_something_in_it_is_left_as_it_is() {
    let folder = folder();
    let project = folder.path().join("orders");
    fs::create_dir(&project).expect("a folder");
    fs::write(project.join("notes"), "mine").expect("a file");
    let ended = new_in(folder.path(), &["orders"]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("orders isn't empty: name another one with --into"), "{}", ended.stderr);
    assert_eq!(files(folder.path()).len(), 1);

    let ended = new_in(folder.path(), &["orders", "--into", "orders/notes"]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("orders/notes isn't a folder: name another"), "{}", ended.stderr);

    fs::remove_file(project.join("notes")).expect("removed");
    assert!(new_in(folder.path(), &["orders"]).await.status.success());
}

#[tokio::test]
async fn a_file_that_can_not_be_written_is_named() {
    let folder = folder();
    // A link to nowhere is no folder, and none can be made in its place.
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).expect("a link");
    let ended = new_in(folder.path(), &["orders", "--into", "link"]).await;
    assert_eq!(ended.status.code(), Some(1));
    let wanted = "could not write link/Cargo.toml: name another folder with --into: ";
    assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
}

#[tokio::test]
async fn a_wrong_name_or_source_writes_nothing_and_says_what_to_do() {
    let folder = folder();
    let wrong: [(&[&str], i32, &str); 7] = [
        (&["7days"], 2, "begins with a letter"),
        (&["Orders"], 2, "write `orders`"),
        (&["async"], 2, "choose another name, such as `my-async`"),
        (&["tickover"], 2, "choose another name"),
        (&["orders", "--path", ".", "--git", "https://example.com/x"], 2, "cannot be used with"),
        (&["orders", "--git", "two words"], 2, "expected a URL"),
        (&["orders", "--path", "."], 1, "name the folder of a checkout"),
    ];
    for (args, status, remedy) in wrong {
        let ended = new_in(folder.path(), args).await;
        assert_eq!(ended.status.code(), Some(status), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(remedy), "{args:?}: {}", ended.stderr);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

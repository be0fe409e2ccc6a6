//! A release of small files, unpacked and checked.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use flate2::read::GzDecoder;
use tempfile::TempDir;
use zip::ZipArchive;

use super::*;

/// Files in place of what cargo-lambda builds.
fn built(folder: &Path, architecture: Architecture) -> Built {
    let functions = folder.join(architecture.name());
    for function in FUNCTIONS {
        fs::create_dir_all(functions.join(function)).unwrap();
        fs::write(functions.join(function).join("bootstrap"), format!("{function} {}", architecture.name()))
            .unwrap();
    }
    let tool = functions.join("tool");
    fs::write(&tool, "the tool").unwrap();
    Built { architecture, functions, tool }
}

/// A release for one architecture, and the folder that it is written to.
fn written() -> (TempDir, PathBuf) {
    let around = TempDir::new().unwrap();
    let release = Release {
        built: vec![built(around.path(), Architecture::X86)],
        left_out: vec![(Architecture::Arm64, "no compiler".to_owned())],
        commit: "0123".to_owned(),
        sbom: b"{}".to_vec(),
    };
    let folder = around.path().join("dist");
    release.write(&folder).unwrap();
    (around, folder)
}

/// The paths of all files in a folder, from there on, and their contents.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_release_has_all_archives_and_templates_and_says_what_is_left_out() {
    let (_around, folder) = written();
    let tool = format!("tickover-{VERSION}-linux-x86_64.tar.gz");
    let names = [
        "claim.zip",
        "complete.zip",
        "core.yaml",
        "gateway.zip",
        "schedule.zip",
        "tick.zip",
        "worker.yaml",
        "worker.zip",
    ];
    let mut expected: Vec<String> = names.iter().map(|name| format!("x86_64/{name}")).collect();
    let others = [
        CHECKSUMS,
        "core.yaml",
        "manifest.json",
        "worker.yaml",
        &tool,
        &format!("tickover-{VERSION}.cdx.json"),
    ];
    expected.extend(others.map(str::to_owned));
    expected.sort();
    let found: Vec<String> = contents(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, expected);
    let manifest: Value = serde_json::from_slice(&read(&folder.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["version"], VERSION);
    assert_eq!(manifest["commit"], "0123");
    assert_eq!(manifest["architectures"], json!({"arm64": "left out: no compiler", "x86_64": "built"}));
}

#[test]
fn a_functions_archive_has_only_its_program_which_may_be_executed() {
    let (_around, folder) = written();
    for function in FUNCTIONS {
        let bytes = read(&folder.join(templates::archive("x86_64", short(function).unwrap()))).unwrap();
        let mut archive = ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
        assert_eq!(archive.len(), 1);
        let mut program = archive.by_index(0).unwrap();
        assert_eq!(program.name().unwrap(), "bootstrap");
        assert_eq!(program.last_modified(), Some(zip::DateTime::DEFAULT));
        assert_eq!(program.unix_mode().unwrap() & 0o777, 0o755);
        let mut text = String::new();
        program.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("{function} x86_64"));
    }
}

#[test]
fn the_tools_archive_has_the_tool_and_the_licences() {
    let (around, folder) = written();
    let name = format!("tickover-{VERSION}-linux-x86_64");
    let bytes = read(&folder.join(format!("{name}.tar.gz"))).unwrap();
    let unpacked = || GzDecoder::new(bytes.as_slice());
    assert_eq!(unpacked().header().map(flate2::GzHeader::mtime), Some(0));
    for entry in tar::Archive::new(unpacked()).entries().unwrap() {
        assert_eq!(entry.unwrap().header().mtime().unwrap(), archive::TIME);
    }
    tar::Archive::new(unpacked()).unpack(around.path()).unwrap();
    let tool = around.path().join(&name).join("tickover");
    assert_eq!(fs::read_to_string(&tool).unwrap(), "the tool");
    assert_eq!(tool.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    for license in LICENSES {
        let unpacked = read(&around.path().join(&name).join(license)).unwrap();
        assert_eq!(unpacked, read(&root().join(license)).unwrap());
    }
}

#[test]
fn the_checksums_are_those_of_all_files() {
    let (_around, folder) = written();
    let check = || {
        Command::new("sha256sum")
            .args(["--check", "--strict", CHECKSUMS])
            .current_dir(&folder)
            .output()
            .unwrap()
    };
    let said = check();
    assert!(said.status.success(), "{said:?}");
    // Each file but the list itself.
    assert_eq!(String::from_utf8(said.stdout).unwrap().lines().count(), contents(&folder).len() - 1);
    fs::write(folder.join("x86_64/claim.zip"), "changed").unwrap();
    assert!(!check().status.success());
}

#[test]
fn the_same_programs_give_the_same_bytes() {
    let (first_around, first) = written();
    let (_second_around, second) = written();
    assert_eq!(contents(&first), contents(&second));
    // A later release in the same folder leaves nothing of the first.
    let release = Release {
        built: vec![built(first_around.path(), Architecture::Arm64)],
        left_out: vec![],
        commit: "4567".to_owned(),
        sbom: vec![],
    };
    release.write(&first).unwrap();
    assert!(contents(&first).iter().all(|(name, _)| !name.contains("x86_64")));
}

//! `cargo xtask measure-functions`: measures the functions' sizes, cold starts and memory, as they are deployed. Fails
//! if a figure exceeds its bound.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::build::{self, Architecture, FUNCTIONS, GATEWAY};
use crate::cargo::{output, succeed, target_dir};
use crate::emulator::Emulator;
use crate::test::{self, at_emulator};

/// Largest archive of a function. Lambda fetches it at each cold start.
const ZIP_BYTES_MAX: u64 = 35 * 128 * 1024;
/// Largest archive of the gateway, which has all calls of the API.
const GATEWAY_ZIP_BYTES_MAX: u64 = 39 * 128 * 1024;

/// Argument: a file. Prints the size of an archive that contains only this file, made in the same way as by SAM.
const ZIP: &str = r"
import io, sys, zipfile
archive = io.BytesIO()
with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED) as zip: zip.write(sys.argv[1], 'bootstrap')
print(archive.tell())
";

/// Builds the functions and the program that measures them, and prints one JSON line for each figure.
pub(crate) fn run() -> Result<()> {
    let folder = build::with_empty(Architecture::here())?;
    let too_large = sizes(&folder)?;
    // With the same arguments as `cargo xtask test`, so that both share what is built.
    test::build()?;
    let emulator = Emulator::start()?;
    let mut measure = Command::new(target_dir()?.join("debug/measure"));
    succeed(at_emulator(measure.arg(&folder), &emulator.endpoint()))
        .context("the functions were measured")?;
    ensure!(too_large.is_empty(), "archives that are too large: {}", too_large.join(", "));
    Ok(())
}

/// Prints the sizes, and returns the functions that are too large.
fn sizes(folder: &Path) -> Result<Vec<String>> {
    let mut too_large = Vec::new();
    for name in FUNCTIONS {
        let file = folder.join(name).join("bootstrap");
        let bytes = file.metadata().with_context(|| format!("no {}", file.display()))?.len();
        let zip_bytes: u64 = output(Command::new("python3").args(["-c", ZIP]).arg(&file))?.trim().parse()?;
        println!("{}", json!({"name": "size", "function": name, "bytes": bytes, "zip_bytes": zip_bytes}));
        let most = zip_bytes_max(name);
        if zip_bytes > most {
            too_large.push(format!("{name} has {zip_bytes} of {most} bytes"));
        }
    }
    Ok(too_large)
}

fn zip_bytes_max(function: &str) -> u64 {
    if function == GATEWAY { GATEWAY_ZIP_BYTES_MAX } else { ZIP_BYTES_MAX }
}

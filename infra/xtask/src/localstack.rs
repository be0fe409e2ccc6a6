//! `cargo xtask localstack up|down|test`: an emulator that stays, on the port that `LocalStack` has, for work by hand.
//!
//! `up` doesn't wait for anything once it is ready: the emulator goes on alone, and `down` ends it by the process id
//! that it left behind. With Docker, `localstack/compose.yaml` is the other way to the same.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{output, root, target_dir};
use crate::emulator::{self, Emulator};
use crate::test::away_from_aws;
use crate::{python, test};

const PORT: u16 = 4566;
/// What the bootstrap says if there is nothing left to do.
const READY: &str = "bootstrap: ready";
/// What the emulator's command line is known by.
const PROGRAM: &str = "from ministack.app import main; main()";
const START_BOUND: Duration = Duration::from_mins(1);
const STOP_BOUND: Duration = Duration::from_secs(10);
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Starts the emulator unless something answers there, makes table and queues, and says how to use them.
pub(crate) fn up() -> Result<()> {
    let python = install()?;
    if emulator::is_healthy(address()) {
        println!("localstack: {} answers already", endpoint());
    } else {
        start(&python)?;
    }
    print!("{}", bootstrap(&python, &endpoint())?);
    let variables = root().join("localstack/localstack.env");
    println!("localstack: {} is ready, to be ended by `cargo xtask localstack down`", endpoint());
    println!("For your shell: set -a; . {}; set +a\n", variables.display());
    print!("{}", fs::read_to_string(&variables)?);
    Ok(())
}

/// Ends the emulator that `up` has started, and all that is in it.
pub(crate) fn down() -> Result<()> {
    let file = pid_file()?;
    let Some(pid) = running(&file)? else {
        println!("localstack: none that we started is running");
        return Ok(());
    };
    output(Command::new("kill").arg(&pid))?;
    let begun = Instant::now();
    while running(&file)?.is_some() {
        if begun.elapsed() > STOP_BOUND {
            // A long poll may keep it for longer than anybody wants to wait.
            output(Command::new("kill").args(["-KILL", &pid]))?;
            break;
        }
        thread::sleep(POLL_EVERY);
    }
    fs::remove_file(&file)?;
    println!("localstack: ended");
    Ok(())
}

/// Runs `cargo test ARGS` against the emulator that is there, that of `LocalStack` included.
pub(crate) fn tests(args: &[String]) -> Result<ExitStatus> {
    ensure!(
        emulator::is_healthy(address()),
        "nothing answers at {}: `cargo xtask localstack up`",
        endpoint()
    );
    bootstrap(&install()?, &endpoint())?;
    test::run_at(&endpoint(), args)
}

/// Whether the bootstrap makes everything at first, and nothing a second time, in an emulator of its own.
pub(crate) fn check() -> Result<()> {
    let python = install()?;
    let emulator = Emulator::start()?;
    let made = bootstrap(&python, &emulator.endpoint())?;
    ensure!(
        made.contains("made table") && made.contains("made queue"),
        "the bootstrap made nothing:\n{made}"
    );
    let again = bootstrap(&python, &emulator.endpoint())?;
    ensure!(again.trim() == READY, "repeated, the bootstrap still changed something:\n{again}");
    Ok(())
}

fn install() -> Result<PathBuf> {
    python::install(&folder()?, &root().join("localstack/requirements.txt"), "ministack")
}

fn start(python: &Path) -> Result<()> {
    let folder = folder()?;
    let log = folder.join("localstack.log");
    let mut child = emulator::command(python, PROGRAM, address(), &folder, &log)?
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("could not start {}", python.display()))?;
    fs::write(pid_file()?, child.id().to_string())?;
    let begun = Instant::now();
    while !emulator::is_healthy(address()) {
        if let Some(status) = child.try_wait()? {
            bail!("the emulator ended with {status}; see {}. Is port {PORT} taken?", log.display());
        }
        ensure!(begun.elapsed() < START_BOUND, "no answer in {START_BOUND:?}; see {}", log.display());
        thread::sleep(POLL_EVERY);
    }
    Ok(())
}

/// Makes what is missing, and returns what it said.
fn bootstrap(python: &Path, endpoint: &str) -> Result<String> {
    let mut command = Command::new(python);
    away_from_aws(&mut command).env("AWS_ENDPOINT_URL", endpoint);
    output(command.arg(root().join("localstack/bootstrap.py"))).context("the bootstrap failed")
}

/// The process that the file names, if it is still ours: ids are given out again.
fn running(file: &Path) -> Result<Option<String>> {
    let Ok(pid) = fs::read_to_string(file) else { return Ok(None) };
    let found = Command::new("ps").args(["-o", "stat=,args=", "-p", &pid]).output()?;
    let shown = String::from_utf8_lossy(&found.stdout);
    // One that has ended and that nobody has waited for is shown as well.
    Ok((shown.contains(PROGRAM) && !shown.trim_start().starts_with('Z')).then_some(pid))
}

fn pid_file() -> Result<PathBuf> {
    Ok(folder()?.join("localstack.pid"))
}

fn folder() -> Result<PathBuf> {
    Ok(target_dir()?.join("emulator"))
}

fn address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, PORT).into()
}

fn endpoint() -> String {
    format!("http://{}", address())
}

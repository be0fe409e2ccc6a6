//! `cargo xtask localstack up|down|test`: a persistent emulator on `LocalStack`'s port, for manual work.
//!
//! `up` returns as soon as the emulator is ready. `down` stops it with the process id from a file that `up` has
//! written. With Docker, use `localstack/compose.yaml` instead.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{output, root, target_dir};
use crate::emulator::{self, Emulator};
use crate::test::away_from_aws;
use crate::{python, test};

const PORT: u16 = 4566;
/// The bootstrap's last line, and its only one if nothing was missing.
const READY: &str = "bootstrap: ready";
/// The text by which the emulator's process is recognised.
const PROGRAM: &str = "from ministack.app import main; main()";
/// Argument: compose.yaml. Runs its hooks in the same way as `LocalStack`, with the container's environment. Mounted
/// paths are replaced by the paths on this machine.
const HOOKS: &str = r"
import os, sys, yaml
from pathlib import Path
compose = Path(sys.argv[1])
service = yaml.safe_load(compose.read_text())['services']['localstack']
mounted = {}
for volume in service['volumes']:
    here, there = volume.split(':')[:2]
    mounted[there] = compose.parent / here
for name, value in service['environment'].items():
    os.environ[name] = str(mounted.get(value, value))
for there, here in mounted.items():
    if there.startswith('/etc/localstack/init/ready.d/'):
        exec(here.read_bytes(), {})
";
/// Argument: localstack.env. Prints the resources in it that the emulator doesn't have.
const UNKNOWN: &str = r"
import boto3, sys
from urllib.parse import urlparse
lines = [line.split('=', 1) for line in open(sys.argv[1]).read().splitlines() if not line.startswith('#')]
given = dict(lines)
sqs = boto3.client('sqs')
urls = [given['TICKOVER_QUEUE_URLS'].replace('{name}', name) for name in given['TICKOVER_QUEUES'].split(',')]
for url in [*urls, given['TICKOVER_TIMERS'], given['TICKOVER_EVENTS']]:
    try:
        found = sqs.get_queue_url(QueueName=url.rsplit('/', 1)[1])['QueueUrl']
        if urlparse(found).path != urlparse(url).path: print(url, 'is', found)
    except sqs.exceptions.QueueDoesNotExist:
        print('no queue', url)
if given['TICKOVER_TABLE'] not in boto3.client('dynamodb').list_tables()['TableNames']:
    print('no table', given['TICKOVER_TABLE'])
";
const START_BOUND: Duration = Duration::from_mins(1);
const STOP_BOUND: Duration = Duration::from_secs(10);
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Starts the emulator unless one answers there, creates the table and queues, and prints how to use them.
pub(crate) fn up() -> Result<()> {
    let python = install()?;
    if emulator::is_healthy(address()) {
        println!("localstack: {} answers already", endpoint());
    } else {
        start(&python)?;
    }
    print!("{}", bootstrap(&python, &endpoint())?);
    let variables = root().join("localstack/localstack.env");
    println!("localstack: {} is ready; `cargo xtask localstack down` stops it", endpoint());
    println!("For your shell: set -a; . {}; set +a\n", variables.display());
    print!("{}", fs::read_to_string(&variables)?);
    Ok(())
}

/// Stops the emulator that `up` has started. Its state is lost.
pub(crate) fn down() -> Result<()> {
    let file = pid_file()?;
    let Some(pid) = running(&file)? else {
        println!("localstack: no emulator that `up` started is running");
        return Ok(());
    };
    output(Command::new("kill").arg(&pid))?;
    let begun = Instant::now();
    while running(&file)?.is_some() {
        if begun.elapsed() > STOP_BOUND {
            // A long poll may delay the end for too long.
            output(Command::new("kill").args(["-KILL", &pid]))?;
            break;
        }
        thread::sleep(POLL_EVERY);
    }
    fs::remove_file(&file)?;
    println!("localstack: ended");
    Ok(())
}

/// Fails unless an emulator answers, which may be `LocalStack`.
pub(crate) fn is_up() -> Result<()> {
    ensure!(
        emulator::is_healthy(address()),
        "no emulator answers at {}: start it with `cargo xtask localstack up`, or with Docker",
        endpoint()
    );
    Ok(())
}

/// Runs all tests, or those of `cargo test ARGS`, with the running emulator.
pub(crate) fn run_tests_at_emulator(args: &[String]) -> Result<()> {
    is_up()?;
    bootstrap(&install()?, &endpoint())?;
    test::run_at(&endpoint(), args)
}

/// Checks the bootstrap as a program and as `LocalStack`'s hook, each in a new emulator: the first run creates
/// everything, the second changes nothing. `localstack.env` names what was created.
pub(crate) fn check() -> Result<()> {
    let python = install()?;
    for (way, run) in [("program", bootstrap as Bootstrap), ("hook", hooks)] {
        let emulator = Emulator::start()?;
        let endpoint = emulator.endpoint();
        let made = run(&python, &endpoint)?;
        ensure!(
            made.contains("made table") && made.contains("made queue"),
            "as a {way}, the bootstrap made nothing:\n{made}"
        );
        let again = run(&python, &endpoint)?;
        ensure!(again.trim() == READY, "repeated, the bootstrap still changed something:\n{again}");
        let mut lookup = Command::new(&python);
        away_from_aws(&mut lookup).env("AWS_ENDPOINT_URL", &endpoint).args(["-c", UNKNOWN]);
        let unknown = output(lookup.arg(root().join("localstack/localstack.env")))?;
        ensure!(unknown.is_empty(), "localstack.env names resources that don't exist:\n{unknown}");
        println!("localstack: the bootstrap works as a {way}");
    }
    Ok(())
}

/// A way to run the bootstrap with this Python at this endpoint.
type Bootstrap = fn(&Path, &str) -> Result<String>;

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

/// Creates the missing resources, and returns the bootstrap's output.
fn bootstrap(python: &Path, endpoint: &str) -> Result<String> {
    let mut command = Command::new(python);
    away_from_aws(&mut command).env("AWS_ENDPOINT_URL", endpoint);
    output(command.arg(root().join("localstack/bootstrap.py"))).context("the bootstrap failed")
}

/// Runs the bootstrap as `LocalStack` does.
fn hooks(python: &Path, endpoint: &str) -> Result<String> {
    let mut command = Command::new(python);
    away_from_aws(&mut command).env("AWS_ENDPOINT_URL", endpoint).args(["-c", HOOKS]);
    output(command.arg(root().join("localstack/compose.yaml"))).context("the hook failed")
}

/// The process id in the file, if that process is still the emulator: the system reuses ids.
fn running(file: &Path) -> Result<Option<String>> {
    let Ok(pid) = fs::read_to_string(file) else { return Ok(None) };
    let found = Command::new("ps").args(["-o", "stat=,args=", "-p", &pid]).output()?;
    let shown = String::from_utf8_lossy(&found.stdout);
    // `ps` also shows a zombie: a process that has ended and whose parent hasn't waited for it.
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

/// The address of the emulator that runs beside this program.
pub(crate) fn endpoint() -> String {
    format!("http://{}", address())
}

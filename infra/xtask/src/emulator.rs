//! The AWS emulator for the network tests: installed under `target/`, started on a free port of this machine, and
//! always stopped at the end.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::judge::Judge;
use crate::test::away_from_aws;
use crate::{cargo, python};

/// Starts the emulator in a process that ends when its standard input closes. The other end of that pipe is in this
/// process, so the emulator stops even if this process is killed. A thread ends the process by force if a long poll
/// keeps it from ending in time.
///
/// Its `CloudFormation` refuses alarms that compare metrics, and with them the whole stack. Here it makes one of the first of
/// these metrics in place of each, so that everything else of the templates is deployed as it is.
///
/// Its simulation of a role's policies knows no keys of records, on which these depend. Here it gets those of the question, so
/// that it decides as AWS does.
///
/// Where a judge is, deployed functions call it in place of the emulator, and say which ones they are.
const PROGRAM: &str = r"
import os, signal, threading, time

def end_with_parent():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(3)
    os._exit(0)

threading.Thread(target=end_with_parent, daemon=True).start()
from ministack.services.cloudformation import provisioners
recorded = provisioners._cw_metric_alarm_record
def of_first(name, props):
    for metric in props.pop('Metrics', []):
        if 'MetricStat' in metric:
            stat = metric['MetricStat']
            given = {**stat['Metric'], 'Period': stat['Period'], 'Statistic': 'Sum'}
            props = {**given, **props}
    return recorded(name, props)
provisioners._cw_metric_alarm_record = of_first
from ministack.services import lambda_svc
environment = lambda_svc._provided_worker_env
def judged(config, code_dir, port):
    made = environment(config, code_dir, port)
    if 'JUDGE' in os.environ:
        made.update(AWS_ENDPOINT_URL=os.environ['JUDGE'], AWS_SESSION_TOKEN=config['FunctionName'])
    return made
lambda_svc._provided_worker_env = judged
from ministack.core import iam_evaluator
from ministack.services import iam
asked, context, keys = iam._extract_simulate_params, iam_evaluator.EvalContext, {}
def with_keys(request):
    entry = 'ContextEntries.member.1.ContextKey'
    name, value = (iam._p(request, entry + part) for part in ['Name', 'Values.member.1'])
    keys.clear()
    keys.update({name.lower(): [value]} if name else {})
    return asked(request)
def of_question(*given, **named):
    return context(*given, **{'service_context': dict(keys), **named})
iam._extract_simulate_params, iam_evaluator.EvalContext = with_keys, of_question
from ministack.app import main
main()
";

/// What the deployed systems have that isn't a default of the templates, and changes what a function may do.
const JUDGED: &[&str] = &["Callbacks=on"];

/// The first start compiles all Python files of the emulator.
const START_BOUND: Duration = Duration::from_mins(1);
const STOP_BOUND: Duration = Duration::from_secs(6);
const POLL_EVERY: Duration = Duration::from_millis(50);
const ANSWER_BOUND: Duration = Duration::from_secs(2);

/// Another process may take the free port before the emulator does.
const ATTEMPTS: usize = 3;

/// A running emulator; dropping it stops it.
pub(crate) struct Emulator {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    judge: Option<Judge>,
}

impl Emulator {
    /// Installs the emulator if it is missing, starts it without state, and waits until it answers.
    pub(crate) fn start() -> Result<Self> {
        Self::judged_in(None)
    }

    /// The same with a judge of what deployed functions do in this step.
    pub(crate) fn start_judged(step: &str) -> Result<Self> {
        Self::judged_in(Some(step))
    }

    fn judged_in(step: Option<&str>) -> Result<Self> {
        let folder = cargo::target_dir()?.join("emulator");
        let python =
            python::install(&folder, &cargo::root().join("localstack/requirements.txt"), "ministack")?;
        let mut attempt = 1;
        loop {
            match Self::start_once(&python, &folder, step) {
                Ok(emulator) => return Ok(emulator),
                Err(error) if attempt == ATTEMPTS => return Err(error),
                Err(error) => eprintln!("emulator: {error:#}; trying another port"),
            }
            attempt += 1;
        }
    }

    /// Its address, for `AWS_ENDPOINT_URL`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the judge, if there is one: see [`Judge::conclude`].
    pub(crate) fn conclude(&mut self, is_whole: bool) -> Result<()> {
        self.judge.take().map_or(Ok(()), |judge| judge.conclude(is_whole))
    }

    /// The file with its output.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    fn start_once(python: &Path, folder: &Path, step: Option<&str>) -> Result<Self> {
        let address = free_address()?;
        let log = folder.join("log");
        let judge = step.map(|step| Judge::start(step, &format!("http://{address}"), JUDGED)).transpose()?;
        let child = command(python, PROGRAM, address, folder, &log)?
            .envs(judge.iter().map(|judge| ("JUDGE", judge.address())))
            .stdin(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {}", python.display()))?;
        let mut emulator = Self { child, address, log, judge };
        emulator.wait_until_ready()?;
        Ok(emulator)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !is_healthy(self.address) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the emulator ended with {status}; see {}", self.log.display());
            }
            if begun.elapsed() > START_BOUND {
                bail!("the emulator did not answer in {START_BOUND:?}; see {}", self.log.display());
            }
            thread::sleep(POLL_EVERY);
        }
        Ok(())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < STOP_BOUND {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(POLL_EVERY),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // If this fails, nothing else can be tried: the process is gone or isn't ours.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The command that runs the emulator at an address, with its output in the log. It has none of this machine's AWS
/// settings.
pub(crate) fn command(
    python: &Path,
    program: &str,
    address: SocketAddr,
    folder: &Path,
    log: &Path,
) -> Result<Command> {
    let output = File::create(log).with_context(|| format!("could not write {}", log.display()))?;
    let scratch = folder.join("tmp");
    fs::create_dir_all(&scratch).with_context(|| format!("could not create {}", scratch.display()))?;
    let mut command = Command::new(python);
    away_from_aws(&mut command)
        .args(["-c", program])
        .current_dir(folder)
        .env("BIND_HOST", address.ip().to_string())
        .env("GATEWAY_PORT", address.port().to_string())
        // Functions that are deployed to the emulator inherit its environment.
        .env("AWS_ENDPOINT_URL", format!("http://{address}"))
        // Turns off listeners on other, fixed ports.
        .envs([("IOT_MTLS_ENABLED", "0"), ("SFTP_ENABLED", "0")])
        .env("TMPDIR", scratch)
        .stdout(output.try_clone()?)
        .stderr(output)
        // A separate process group: Ctrl-C stops the tests at once, and the emulator after them.
        .process_group(0);
    Ok(command)
}

/// A port of this machine that is free now.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?)
}

/// Whether an emulator answers there: this one or `LocalStack`, whose health path this one has too.
pub(crate) fn is_healthy(address: SocketAddr) -> bool {
    answers(address, "/_localstack/health")
}

/// Whether a server answers there with status 200 to a GET of this path.
pub(crate) fn answers(address: SocketAddr, path: &str) -> bool {
    status_line(address, path).is_ok_and(|line| line.starts_with("HTTP/1.1 200"))
}

fn status_line(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_BOUND)?;
    stream.set_read_timeout(Some(ANSWER_BOUND))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = [0; 12];
    stream.read_exact(&mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

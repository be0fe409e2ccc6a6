//! Our binaries as real processes: started, read, interrupted, killed.

mod output;

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

use output::Output;

/// How long a process may take to start listening, or to end after a signal. It is long because many tests run at once.
pub const BOUND: Duration = Duration::from_secs(30);

/// How long the pipes of a process that has ended may stay open.
const DRAIN_BOUND: Duration = Duration::from_secs(2);

/// What `tickover dev` prints before its address, on a line of standard output.
const LISTENING: &str = "listening on ";

/// How long what a test waits for may take.
const LOOK_BOUND: Duration = Duration::from_mins(1);

/// How often a test looks for what it waits for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until a look finds what it looks for.
///
/// # Panics
///
/// If that takes longer than a minute.
pub async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let mut looks = interval(LOOK_EVERY);
    let found = timeout(LOOK_BOUND, async {
        loop {
            looks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("waited in vain for {what:?}"))
}

/// The path of one of the workspace's binaries, in the folder in which this test was built.
///
/// # Panics
///
/// If it hasn't been built: cargo builds it only for tests of its own package.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    // target/debug/deps/this-test-0123456789abcdef
    let path = test.ancestors().nth(2).map(|folder| folder.join(name)).unwrap_or_default();
    assert!(path.is_file(), "{} is missing: run `cargo xtask test`", path.display());
    path
}

/// A running process whose output is kept. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    stdout: Output,
    stderr: Output,
    /// Its exit status once it has one.
    status: watch::Receiver<Option<ExitStatus>>,
    kill: Arc<Notify>,
    /// Owns the child process; dropping it kills the child.
    owner: JoinHandle<()>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.owner.abort();
    }
}

/// How a process ended, and all its output.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status, or the signal that ended it.
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Process {
    /// Starts the binary `name` with empty standard input.
    pub fn spawn(name: &str, args: &[&str]) -> Result<Self> {
        Self::from_command(Command::new(binary(name)).args(args))
    }

    /// Starts `tickover ARGS`.
    pub fn tickover(args: &[&str]) -> Result<Self> {
        Self::spawn("tickover", args)
    }

    /// Starts a command that the test has prepared, for example with an environment or a folder.
    pub fn from_command(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("could not start {command:?}"))?;
        let pid = child.id().context("a process without an id")?;
        let stdout = Output::follow(child.stdout.take().context("no standard output")?);
        let stderr = Output::follow(child.stderr.take().context("no standard error")?);
        let (sender, status) = watch::channel(None);
        let kill = Arc::new(Notify::new());
        let owner = tokio::spawn(own(child, Arc::clone(&kill), sender));
        Ok(Self { pid, stdout, stderr, status, kill, owner })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The address in its line `listening on http://127.0.0.1:PORT`, once it has printed it.
    pub async fn address(&self) -> Result<String> {
        let line = self.line(|line| line.starts_with(LISTENING)).await.context("never listened")?;
        Ok(line.trim_start_matches(LISTENING).to_owned())
    }

    /// The first line of standard output, printed already or later, that `is_wanted` accepts.
    pub async fn line(&self, is_wanted: impl Fn(&str) -> bool) -> Result<String> {
        let found = timeout(BOUND, self.stdout.line(is_wanted)).await;
        found.ok().flatten().ok_or_else(|| anyhow!("the line was never printed; {}", self.output_text()))
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until it has written this to standard error.
    ///
    /// # Panics
    ///
    /// If that takes longer than a minute.
    pub async fn says(&self, wanted: &str) {
        until(wanted, async || self.stderr().contains(wanted).then_some(())).await;
    }

    /// Kills it with SIGKILL, as abruptly as a power cut, and waits until it is gone.
    pub async fn kill(&self) -> Result<Ended> {
        self.kill.notify_one();
        self.ended().await
    }

    /// Interrupts it as Ctrl-C does (SIGINT), and waits until it has ended.
    pub async fn interrupt(&self) -> Result<Ended> {
        self.signal("INT").await?;
        self.ended().await
    }

    /// Sends a signal by its name without `SIG`, and doesn't wait for the process.
    pub async fn signal(&self, name: &str) -> Result<()> {
        // The standard library can't send signals, and unsafe code is forbidden here.
        let sent = Command::new("kill").args(["-s", name, &self.pid.to_string()]).status().await?;
        if !sent.success() {
            bail!("could not send SIG{name}; {}", self.output_text());
        }
        Ok(())
    }

    /// Waits, with a bound, until it ends by itself.
    pub async fn ended(&self) -> Result<Ended> {
        let status = timeout(BOUND, self.end()).await;
        let status = status.map_err(|_| anyhow!("still running after {BOUND:?}; {}", self.output_text()))?;
        let status = status.context("the system doesn't report the status of the process")?;
        Ok(Ended { status, stdout: self.stdout(), stderr: self.stderr() })
    }

    /// All its output, for the messages of failing tests.
    pub fn output_text(&self) -> String {
        format!("standard output:\n{}\nstandard error:\n{}", self.stdout(), self.stderr())
    }

    /// Waits, without a bound, until it has ended and its output has been read. `None` if the system doesn't report its
    /// status.
    pub(crate) async fn end(&self) -> Option<ExitStatus> {
        let mut status = self.status.clone();
        let status = status.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        // A grandchild may keep the pipes open, so this wait has a bound as well.
        drop(timeout(DRAIN_BOUND, async { tokio::join!(self.stdout.end(), self.stderr.end()) }).await);
        status
    }
}

/// Waits for the child's end, and kills it when notified.
async fn own(mut child: Child, kill: Arc<Notify>, status: watch::Sender<Option<ExitStatus>>) {
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = kill.notified() => {
            // An error means that it is gone already.
            drop(child.start_kill());
            child.wait().await
        }
    };
    status.send_replace(ended.ok());
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// A fake server: it listens at once, and exits with 0 when interrupted.
    const SERVER: &str = r"
import signal, sys
def end(*_):
    print('bye', flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, end)
print('starting\nlistening on http://127.0.0.1:9', flush=True)
signal.pause()
";

    fn server() -> Process {
        Process::from_command(Command::new("python3").args(["-c", SERVER])).expect("python3 starts")
    }

    #[tokio::test]
    async fn a_server_prints_its_address_and_ends_when_interrupted() {
        let server = server();
        assert_eq!(server.address().await.expect("an address"), "http://127.0.0.1:9");
        let ended = server.interrupt().await.expect("an end");
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(ended.stdout, "starting\nlistening on http://127.0.0.1:9\nbye\n");
    }

    #[tokio::test]
    async fn a_killed_process_is_gone_and_prints_nothing_more() {
        let server = server();
        server.address().await.expect("an address");
        let ended = server.kill().await.expect("an end");
        assert_eq!(ended.status.signal(), Some(9));
    }

    #[tokio::test]
    async fn a_line_that_is_never_printed_is_an_error_with_the_output() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such option >&2; exit 2"]);
        let process = Process::from_command(&mut command).expect("sh starts");
        let error = process.address().await.expect_err("no address");
        assert!(format!("{error:#}").contains("no such option"), "{error:#}");
    }
}

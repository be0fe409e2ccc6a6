//! The running command of one task: its start, its pipes and its end.
//!
//! The command leads its own process group. So Ctrl-C in the terminal reaches only the worker, and ending the command
//! also ends the processes that it has started.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tickover_core::limits::Limits;
use tickover_wire::answer::ClaimedView;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Worker;
use super::capture::{Capture, Keep};
use super::guard::Guarded;
use super::sign::Signs;

/// Bytes of standard error that a failed attempt reports.
const ERROR_TAIL_BYTES: usize = 2 * 1024;
/// How long the pipes may stay open after the command has ended: a process that it started may still have them open.
const PIPES_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a process group that got SIGTERM is checked.
const GROUP_CHECK_EVERY: Duration = Duration::from_millis(20);

/// A running command. Dropping it kills its whole process group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Pid,
    stdout: Capture,
    stderr: Capture,
    _guarded: Guarded,
    /// It stays open when the command closes its output.
    signs: Arc<watch::Sender<Signs>>,
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum End {
    /// It exited or was killed by a signal.
    Exited(ExitStatus),
    /// It still runs, and has written more than a result may have.
    TooLarge,
    /// The system couldn't report its end.
    Lost(io::Error),
}

impl Drop for Process {
    fn drop(&mut self) {
        // It still has an id, so it hasn't been waited for: the group id can't belong to another process.
        if self.child.id().is_some() {
            self.signal(Signal::SIGKILL);
        }
    }
}

impl Process {
    /// Starts the command for this task.
    pub(super) fn start(worker: &Worker, task: &ClaimedView) -> io::Result<Self> {
        let (program, arguments) = worker.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).kill_on_drop(true);
        command.stdin(if task.input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        environment(&mut command, worker, task);
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).ok_or(io::ErrorKind::NotFound)?;
        let group = Pid::from_raw(pid);
        let guarded = worker.guard.keep(group);
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), &task.input) {
            let input = input.as_str().to_owned();
            tokio::spawn(async move {
                // A command may leave its input unread, or a part of it.
                drop(stdin.write_all(input.as_bytes()).await);
            });
        }
        let signs = Arc::new(watch::Sender::new(Signs::default()));
        Ok(Self {
            child,
            group,
            _guarded: guarded,
            stdout: Capture::of(stdout, Keep::All(Limits::default().payload_bytes), Arc::clone(&signs)),
            stderr: Capture::of(stderr, Keep::Tail(ERROR_TAIL_BYTES), Arc::clone(&signs)),
            signs,
        })
    }

    /// A receiver of its signs of life.
    pub(super) fn signs(&self) -> watch::Receiver<Signs> {
        self.signs.subscribe()
    }

    /// Waits for its end. May be cancelled and called again.
    pub(super) async fn end(&mut self) -> End {
        let status = tokio::select! {
            status = self.child.wait() => status,
            () = self.stdout.overflowed() => return End::TooLarge,
        };
        let outputs_ended = async { tokio::join!(self.stdout.ended(), self.stderr.ended()) };
        if timeout(PIPES_TIMEOUT, outputs_ended).await.is_err() {
            tracing::warn!(
                "the command has ended, but a process that it started keeps its output open: not waited for"
            );
        }
        match status {
            Ok(_) if self.stdout.is_too_large() => End::TooLarge,
            Ok(status) => End::Exited(status),
            Err(error) => End::Lost(error),
        }
    }

    /// Ends the process group: SIGTERM, and SIGKILL after the grace period.
    pub(super) async fn terminate(&mut self, grace: Duration) {
        self.signal(Signal::SIGTERM);
        let group_ended = async {
            drop(self.child.wait().await);
            while !matches!(killpg(self.group, None), Err(Errno::ESRCH)) {
                sleep(GROUP_CHECK_EVERY).await;
            }
        };
        if timeout(grace, group_ended).await.is_err() {
            self.signal(Signal::SIGKILL);
            drop(timeout(PIPES_TIMEOUT, self.child.wait()).await);
        }
    }

    /// The standard output.
    pub(super) fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes()
    }

    /// The end of the standard error.
    pub(super) fn stderr_tail(&self) -> String {
        self.stderr.text()
    }

    fn signal(&self, signal: Signal) {
        match killpg(self.group, signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => {
                tracing::warn!(group = %self.group, %signal, %error, "the command can't be signalled");
            }
        }
    }
}

fn environment(command: &mut Command, worker: &Worker, task: &ClaimedView) {
    command
        .env("TICKOVER_TASK_ID", task.id.as_str())
        .env("TICKOVER_IDEMPOTENCY_KEY", task.idempotency_key.as_ref().unwrap_or(&task.id).as_str())
        .env("TICKOVER_ATTEMPT", task.attempt.to_string())
        .env("TICKOVER_KIND", task.kind.as_str())
        .env("TICKOVER_QUEUE", worker.queue.as_str())
        // The tool refuses both at once.
        .env_remove("TICKOVER_ENDPOINT")
        .env_remove("TICKOVER_STACK")
        .envs(worker.place.variables());
    let deadline_at = task.deadline_at.map(|at| at.to_rfc3339());
    let progress = task.progress.map(|progress| progress.to_string());
    let details = task.details.as_ref().map(|details| details.as_str().to_owned());
    let optional = [
        ("TICKOVER_DEADLINE_AT", &deadline_at),
        ("TICKOVER_PROGRESS", &progress),
        ("TICKOVER_DETAILS", &details),
        ("TRACEPARENT", &task.traceparent),
    ];
    for (name, value) in optional {
        match value {
            Some(value) => command.env(name, value),
            // The worker itself may run as a task's command, and would pass on its own variable.
            None => command.env_remove(name),
        };
    }
}

//! A process that outlives a worker that is killed, and ends the commands that the worker left behind: otherwise they would go
//! on beside the next attempts of their tasks.
//!
//! It is this program again. The worker tells it by a pipe which process groups run. The pipe ends with the worker, however
//! the worker ends.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The hidden command that it runs.
pub(super) const COMMAND: &str = "guard-commands";

/// The worker's end of the pipe. `None` if the process couldn't be started.
#[derive(Clone, Debug)]
pub(super) struct Guard(Option<Arc<ChildStdin>>);

/// A process group that is ended if the worker dies before this is dropped.
#[derive(Debug)]
pub(super) struct Guarded {
    guard: Guard,
    group: Pid,
}

impl Guard {
    /// Starts the process. A worker without it works as well.
    pub(super) fn start() -> Self {
        Self(match start() {
            Ok(pipe) => Some(Arc::new(pipe)),
            Err(error) => {
                tracing::warn!(%error, "commands go on if this worker is killed");
                None
            }
        })
    }

    pub(super) fn keep(&self, group: Pid) -> Guarded {
        self.tell('+', group);
        Guarded { guard: self.clone(), group }
    }

    fn tell(&self, what: char, group: Pid) {
        let Some(pipe) = &self.0 else { return };
        // One write of a few bytes is not mixed with others.
        if let Err(error) = (&**pipe).write_all(format!("{what}{group}\n").as_bytes()) {
            tracing::debug!(%error, "the guard of the commands is gone");
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.guard.tell('-', self.group);
    }
}

fn start() -> io::Result<ChildStdin> {
    let mut guard = Command::new(std::env::current_exe()?);
    // In its own group, Ctrl-C in the terminal doesn't reach it.
    guard.arg(COMMAND).process_group(0);
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    guard.spawn()?.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

/// Runs the process: waits for the end of the worker, and then ends the groups that still run.
pub(crate) fn run() {
    let mut running = BTreeSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Some((what, group)) = line.split_at_checked(1) else { continue };
        match (what, group.parse::<i32>()) {
            ("+", Ok(group)) => drop(running.insert(group)),
            ("-", Ok(group)) => drop(running.remove(&group)),
            _ => {}
        }
    }
    for group in running {
        // It may have ended with the worker.
        let _gone = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

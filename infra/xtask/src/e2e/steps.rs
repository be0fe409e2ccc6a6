//! Programs that end when the user, the system or the time limit asks for it, so that what they made can be deleted.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a program may take to end after it was asked to. SAM and cargo end at once.
const ENDING_BOUND: Duration = Duration::from_secs(20);

/// Starts programs one after the other, until Ctrl-C, SIGTERM, SIGHUP or the end of its time.
pub(super) struct Steps {
    is_stopped: Arc<AtomicBool>,
    /// None is never.
    end: Option<Instant>,
}

impl Steps {
    /// From now on, these signals no longer end this process: they only stop the steps.
    pub(super) fn until_stopped(limit: Duration) -> Result<Self> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_stopped);
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
            .context("signals can't be received")?;
        Ok(Self::new(is_stopped, limit))
    }

    /// Steps that nothing stops.
    pub(super) fn unstoppable() -> Self {
        Self { is_stopped: Arc::default(), end: None }
    }

    fn new(is_stopped: Arc<AtomicBool>, limit: Duration) -> Self {
        Self { is_stopped, end: Some(Instant::now() + limit) }
    }

    /// Runs the command to its end. An error says why it was stopped.
    pub(super) fn status(&self, command: &mut Command) -> Result<ExitStatus> {
        self.check()?;
        // In a group of its own: its child processes are stopped with it, and Ctrl-C reaches only us.
        let child = command.stdin(Stdio::null()).process_group(0).spawn();
        let mut child = child.with_context(|| format!("could not start {command:?}"))?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if let Err(reason) = self.check() {
                stop(&mut child)?;
                return Err(reason);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Runs the command. Any exit status other than 0 is an error.
    pub(super) fn succeed(&self, command: &mut Command) -> Result<()> {
        let status = self.status(command)?;
        ensure!(status.success(), "{command:?} ended with {status}");
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.is_stopped.load(Ordering::Relaxed) {
            bail!("stopped by a signal");
        }
        ensure!(self.end.is_none_or(|end| Instant::now() < end), "stopped at the time limit");
        Ok(())
    }
}

/// Asks the group to end, and ends it by force if it doesn't.
fn stop(child: &mut Child) -> Result<()> {
    let group = Pid::from_raw(i32::try_from(child.id()).context("no process id")?);
    let asked_at = Instant::now();
    // Not SIGINT, which shells make programs in the background ignore. An error says that it has just ended.
    let _ = killpg(group, Signal::SIGTERM);
    while child.try_wait()?.is_none() {
        if asked_at.elapsed() > ENDING_BOUND {
            let _ = killpg(group, Signal::SIGKILL);
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(10);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_step_ends_with_its_own_status() {
        let steps = Steps::new(Arc::default(), LONG);
        steps.succeed(&mut shell("true")).unwrap();
        assert_eq!(steps.status(&mut shell("exit 3")).unwrap().code(), Some(3));
        steps.succeed(&mut shell("exit 3")).unwrap_err();
    }

    #[test]
    fn a_signal_and_the_time_limit_stop_a_step_with_its_children_and_start_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let (begun, file) = (folder.path().join("begun"), folder.path().join("ended"));
        let script = format!(
            "trap 'exit 0' TERM; (trap 'echo > {}; exit' TERM; : > {}; while :; do sleep 0.05; done)",
            file.display(),
            begun.display()
        );
        let flag = Arc::new(AtomicBool::new(false));
        let steps = Steps::new(Arc::clone(&flag), LONG);
        let signal = thread::spawn(move || {
            while !begun.exists() {
                thread::yield_now();
            }
            flag.store(true, Ordering::Relaxed);
        });
        let reason = steps.status(&mut shell(&script)).unwrap_err();
        signal.join().unwrap();
        assert_eq!(reason.to_string(), "stopped by a signal");
        assert!(file.exists(), "the child of the step goes on");

        let steps = Steps::new(Arc::default(), Duration::ZERO);
        let other = folder.path().join("other");
        let reason = steps.status(&mut shell(&format!("touch {}", other.display()))).unwrap_err();
        assert_eq!((reason.to_string().as_str(), other.exists()), ("stopped at the time limit", false));
    }
}

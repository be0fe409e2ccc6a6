//! The demo's workers: `tickover work` in separate processes.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::process::{Child, Command};

/// How long a worker may take to finish after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);

/// All workers started so far. They are killed when it is dropped.
pub(super) struct Workers {
    endpoint: String,
    program: std::path::PathBuf,
    processes: Vec<Child>,
}

impl Workers {
    /// No workers yet.
    pub(super) fn new(endpoint: &str) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("can't find this program's own path")?;
        Ok(Self { endpoint: endpoint.to_owned(), program, processes: vec![] })
    }

    /// Starts a worker for each of these queues, each with two tasks at once.
    pub(super) fn start(&mut self, queues: &[&str]) -> anyhow::Result<()> {
        for (number, queue) in queues.iter().enumerate() {
            let name = format!("worker-{}", number + 1);
            let child = self.spawn(queue, &name, "60s", "2", "work")?;
            self.processes.push(child);
        }
        Ok(())
    }

    /// Starts a worker that never finishes its task and has a short lease.
    pub(super) fn start_hanging(&mut self, queue: &str) -> anyhow::Result<Child> {
        self.spawn(queue, "doomed", "2s", "1", "hang")
    }

    fn spawn(
        &self,
        queue: &str,
        name: &str,
        lease: &str,
        concurrency: &str,
        handler: &str,
    ) -> anyhow::Result<Child> {
        Command::new(&self.program)
            .args(["--endpoint", &self.endpoint, "work", queue, "--worker", name])
            .args(["--lease", lease, "--wait", "1s", "--concurrency", concurrency, "--"])
            .arg(&self.program)
            .args(["demo", "--handle", handler])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // The workers' output would interfere with the progress bar, and the table at the end has all of it.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("a worker can't be started")
    }

    /// Asks all workers to finish, and waits until they have.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        for worker in &self.processes {
            if let Some(pid) = worker.id() {
                let pid = nix::unistd::Pid::from_raw(i32::try_from(pid)?);
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT)?;
            }
        }
        for worker in &mut self.processes {
            let ended = tokio::time::timeout(STOP_TIMEOUT, worker.wait()).await;
            let status = ended.context("a worker doesn't end after SIGTERM")??;
            ensure!(status.success(), "a worker ended with {status}");
        }
        Ok(())
    }
}

//! A project of `tickover new`, treated as by its user: checked, tested, and run with the commands of its own README. The
//! end-to-end tests deploy another one.
//!
//! It is outside of the workspace, as the example crate is, and shares the workspace's target folder.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{
    CLIPPY, cargo, root, search_path, succeed, target_dir, without_cargos_own, without_clippy,
};
use crate::emulator::{answers, free_address};
use crate::{guide, test};

const NAME: &str = "orders";
/// Long, because cargo waits while another build uses the target folder.
const START_BOUND: Duration = Duration::from_mins(5);
const STOP_BOUND: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Makes a project that depends on this checkout, and does with it what its README says.
pub(crate) fn run() -> Result<()> {
    let project = Project::create(NAME)?;
    succeed(project.cargo("fmt").arg("--check"))?;
    succeed(project.build("build").arg("--all-targets").envs(CLIPPY))?;
    succeed(&mut project.build("test"))?;
    // Built before it is started, so that the start has a bound.
    succeed(&mut project.build("build"))?;
    project.follow_the_readme()
}

/// Makes a project of this name. Returns its folder.
pub(crate) fn create(name: &str) -> Result<PathBuf> {
    Ok(Project::create(name)?.folder)
}

/// Gives a call of cargo the workspace's settings, so that it finds the shared dependencies built, and keeps it from clippy.
pub(crate) fn alike(command: &mut Command) -> &mut Command {
    let settings = ["--config", "profile.dev.package.\"*\".debug-assertions=false"];
    without_clippy(command.args(settings)).env("CARGO_PROFILE_DEV_DEBUG", "false")
}

struct Project {
    folder: PathBuf,
    target: PathBuf,
}

impl Project {
    fn create(name: &str) -> Result<Self> {
        let target = target_dir()?;
        let around = target.join("tmp/new");
        let folder = around.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("could not remove {}", folder.display()))?;
        }
        fs::create_dir_all(&around)?;
        // A user's folder is not below ours: without these, our settings would apply to it.
        for settings in [".rustfmt.toml", ".clippy.toml"] {
            fs::write(around.join(settings), "")?;
        }
        test::build()?;
        let mut new = Command::new(target.join("debug/tickover"));
        succeed(new.args(["new", name, "--path", "."]).arg("--into").arg(&folder).current_dir(root()))?;
        // The same versions as in the workspace are built already.
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))
            .context("could not copy Cargo.lock")?;
        Ok(Self { folder, target })
    }

    /// `cargo NAME` in the project's folder.
    fn cargo(&self, name: &str) -> Command {
        let mut command = cargo(&[name]);
        command.current_dir(&self.folder);
        command
    }

    /// The same for commands that build. `--offline`: a version that the workspace doesn't have is an error.
    fn build(&self, name: &str) -> Command {
        let mut command = self.cargo(name);
        alike(command.arg("--offline").arg("--target-dir").arg(&self.target));
        command
    }

    /// Where its program keeps its data.
    fn data(&self) -> PathBuf {
        self.folder.join(format!("{NAME}.db"))
    }

    /// Orders are fulfilled, one of them by a second process after the first was killed.
    fn follow_the_readme(&self) -> Result<()> {
        let first = Running::start(self)?;
        self.call(&first, "start fulfil --id order-7")?;
        self.call(&first, "event order-7")?;
        self.call(&first, "start fulfil --id order-8")?;
        first.kill()?;
        let second = Running::start(self)?;
        self.call(&second, "event order-8")?;
        // It completed, or the exit status isn't 0. A lease of the killed process lasts a minute.
        self.shell(&second, "tickover start fulfil --id order-8 --wait 2m")?;
        second.stop()
    }

    /// Runs the only block of the README's commands that contains `tickover` and this.
    fn call(&self, system: &Running, having: &str) -> Result<()> {
        let readme = self.folder.join("README.md");
        let readme = readme.to_str().context("a path that isn't UTF-8")?;
        let block = guide::block(readme, &format!("tickover {having}"))?;
        self.shell(system, &block)
    }

    /// Runs commands as the user of the project would, with `tickover` in the `PATH`.
    fn shell(&self, system: &Running, commands: &str) -> Result<()> {
        #[expect(
            clippy::disallowed_methods,
            reason = "where programs are is no configuration of the service"
        )]
        let theirs = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.target.join("debug")).chain(std::env::split_paths(&theirs));
        let path = search_path(folders)?;
        let mut shell = Command::new("sh");
        // Prints each command (`-x`), and stops at the first that fails (`-e`).
        without_cargos_own(shell.args(["-exc", commands])).current_dir(&self.folder).stdin(Stdio::null());
        succeed(shell.env("PATH", path).env("TICKOVER_ENDPOINT", format!("http://{}", system.address)))
    }
}

/// The project's process. Dropping it kills it.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    /// Starts `cargo run`, which becomes the program, and waits until its worker has announced itself.
    fn start(project: &Project) -> Result<Self> {
        let address = free_address()?;
        let mut command = project.build("run");
        command.env("TICKOVER_LISTEN", address.to_string()).env("TICKOVER_DATA", project.data());
        let child = command.spawn().context("could not start cargo")?;
        let mut running = Self { child, address };
        let begun = Instant::now();
        while !answers(address, &format!("/v1/queues/{NAME}")) {
            if let Some(status) = running.child.try_wait()? {
                bail!("the project's program ended with {status}");
            }
            ensure!(begun.elapsed() < START_BOUND, "the project's program didn't answer in {START_BOUND:?}");
            thread::sleep(POLL_EVERY);
        }
        Ok(running)
    }

    fn kill(mut self) -> Result<()> {
        self.child.kill().context("could not kill the project's program")?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to stop, and checks that it ends with status 0.
    fn stop(mut self) -> Result<()> {
        // The standard library can't send signals, and unsafe code is forbidden here.
        succeed(Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]))?;
        let begun = Instant::now();
        while begun.elapsed() < STOP_BOUND {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the project's program ended with {status} after SIGTERM");
                return Ok(());
            }
            thread::sleep(POLL_EVERY);
        }
        bail!("the project's program still runs {STOP_BOUND:?} after SIGTERM")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

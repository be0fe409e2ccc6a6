//! What a cron's commands are answered.

use super::Cron;
use super::run::Occurrence;

/// All that follows from a command on a cron. Which runs are to be stopped and started after the commit stands in its
/// record: see [`Cron::stopping_runs`] and [`Cron::starting_runs`].
pub type Decision = crate::decision::Decision<Cron, Reply>;

/// A successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The cron is there.
    Made {
        /// Whether it had been before.
        existed: bool,
    },
    /// It is as asked for, or was looked at. Perhaps nothing had to be changed for that.
    Done,
    /// A run of its own is to be started.
    Triggered(Occurrence),
    /// Runs that are written down must be started before anything else: the command is to be repeated after that.
    StartFirst,
}

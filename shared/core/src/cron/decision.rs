//! The answers to the commands on a cron.

use super::Cron;
use super::run::Occurrence;

/// The decision of a command on a cron. The record lists the runs to stop and to start after the commit: see
/// [`Cron::stopping_runs`] and [`Cron::starting_runs`].
pub type Decision = crate::decision::Decision<Cron, Reply>;

/// A successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The cron exists.
    Created {
        /// Whether it had existed before.
        existed: bool,
    },
    /// The cron has the requested state, or was read. The record may be unchanged.
    Done,
    /// This triggered run is to be started.
    Triggered(Occurrence),
    /// Runs in the state `Starting` must be started first. Repeat the command after that.
    StartFirst,
}

//! A cron, and its calls.

mod define;
mod list;

use tickover_core::id::CronId;

pub use define::{CronTarget, DefineCron};
pub use list::ListCrons;

use super::{Client, ClientError, CronDescription};

/// A cron. Cheap to clone; dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct CronHandle {
    client: Client,
    id: CronId,
}

impl CronHandle {
    pub(super) const fn new(client: Client, id: CronId) -> Self {
        Self { client, id }
    }

    /// Its id.
    pub const fn id(&self) -> &CronId {
        &self.id
    }

    /// Creates the cron. Each occurrence starts this task or execution. If the same cron exists, the call returns it.
    /// If another cron has this id, the call is refused with `id_conflict`.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::Overlap;
    ///
    /// let report = client.task::<()>("report", "sales").queue("reports").retry("fixed(3, 1m)");
    /// let nightly = client.cron("nightly-report")?;
    /// let made = nightly.create(report).cron("0 3 * * *").time_zone("Europe/Berlin").overlap(Overlap::BufferOne);
    /// println!("the next one is at {:?}", made.await?.next_at);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(&self, work: impl Into<CronTarget>) -> DefineCron {
        DefineCron::new(self.clone(), work.into(), false)
    }

    /// Creates the cron, or replaces its definition. Runs that it has started continue.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn billing(_: Ctx, _: ()) -> Result<()> { Ok(()) }
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let hourly = client.cron("billing")?;
    /// hourly.replace(client.start(&billing, ())).every("1h").jitter("5m").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(&self, work: impl Into<CronTarget>) -> DefineCron {
        DefineCron::new(self.clone(), work.into(), true)
    }

    /// The state of the cron: its next occurrence, and its last runs.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// for run in client.cron("billing")?.describe().await?.runs {
    ///     println!("{} of {} is {:?}", run.id, run.at.to_rfc3339(), run.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn describe(&self) -> Result<CronDescription, ClientError> {
        Ok(self.client.api.cron(&self.id).await?.cron)
    }

    /// Starts no planned occurrences until the cron is resumed. Occurrences that pass in the meantime are not started
    /// later.
    pub async fn pause(&self) -> Result<CronDescription, ClientError> {
        Ok(self.client.api.pause_cron(&self.id).await?.cron)
    }

    /// Continues with the next occurrence.
    pub async fn resume(&self) -> Result<CronDescription, ClientError> {
        Ok(self.client.api.resume_cron(&self.id).await?.cron)
    }

    /// Starts a run now, even if other runs are open, and returns the id of its task or execution. It doesn't count as
    /// a planned run.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let run = client.cron("billing")?.trigger().await?;
    /// client.handle::<()>(run)?.result().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn trigger(&self) -> Result<String, ClientError> {
        Ok(self.client.api.trigger_cron(&self.id).await?.run)
    }

    /// Deletes the cron. Runs that it has started continue.
    pub async fn delete(&self) -> Result<(), ClientError> {
        self.client.api.delete_cron(&self.id).await.map(|_| ())
    }
}

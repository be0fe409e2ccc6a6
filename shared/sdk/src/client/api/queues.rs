//! Queues.

use tickover_core::id::QueueName;
use tickover_wire::Route;
use tickover_wire::answer::{
    FailuresAnswer, HistoryAnswer, OverviewAnswer, QueueAnswer, QueuesAnswer, WorkersAnswer,
};
use tickover_wire::request::{FailuresQuery, HistoryQuery};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// All queues, by name.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// for queue in client.api().queues().await?.queues {
    ///     println!("{}: {} tasks wait", queue.name, queue.depth);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn queues(&self) -> Result<QueuesAnswer, ClientError> {
        self.ask(Call::of(Route::Queues, [])).await
    }

    /// A queue, with the age of its oldest task.
    pub async fn queue(&self, name: &QueueName) -> Result<QueueAnswer, ClientError> {
        self.ask(Call::of(Route::Queue, [name.as_str()])).await
    }

    /// All queues with the workers that have asked for their work.
    pub async fn workers(&self) -> Result<WorkersAnswer, ClientError> {
        self.ask(Call::of(Route::Workers, [])).await
    }

    /// How much waits, runs, is late, needs somebody and has failed; and the queues. On AWS it reads at most 5,000 records.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let overview = client.api().overview().await?;
    /// println!("{} tasks wait, {} are late", overview.tasks.pending.count, overview.tasks.late.count);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn overview(&self) -> Result<OverviewAnswer, ClientError> {
        self.ask(Call::of(Route::Overview, [])).await
    }

    /// What has failed or timed out, in groups. A local server counts all that is kept. On AWS the call reads at most 5,000
    /// tasks and 5,000 executions.
    ///
    /// ```no_run
    /// use tickover::client::wire::request::FailuresQuery;
    ///
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// for group in client.api().failures(&FailuresQuery::default()).await?.groups {
    ///     println!("{} failed with {:?}", group.count, group.error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn failures(&self, query: &FailuresQuery) -> Result<FailuresAnswer, ClientError> {
        self.ask(Call::find(Route::Failures, [], query)).await
    }

    /// What a local server's queues did in the last day, or one of them. A deployment on AWS refuses this call: its
    /// metrics are in `CloudWatch`, and `aws::Aws::history` reads them there.
    pub async fn history(&self, queue: Option<&QueueName>) -> Result<HistoryAnswer, ClientError> {
        let query = HistoryQuery { queue: queue.cloned(), from: None };
        self.ask(Call::find(Route::History, [], &query)).await
    }

    /// Pauses a queue: its tasks aren't leased to workers until it is resumed. Deadlines keep running.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let mail = tickover::QueueName::parse("mail")?;
    /// assert!(client.api().pause_queue(&mail).await?.queue.paused);
    /// client.api().resume_queue(&mail).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause_queue(&self, name: &QueueName) -> Result<QueueAnswer, ClientError> {
        self.ask(Call::of(Route::Pause, [name.as_str()]).repeatable(true)).await
    }

    /// Resumes a queue.
    pub async fn resume_queue(&self, name: &QueueName) -> Result<QueueAnswer, ClientError> {
        self.ask(Call::of(Route::Resume, [name.as_str()]).repeatable(true)).await
    }
}

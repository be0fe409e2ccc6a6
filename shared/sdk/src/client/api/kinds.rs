//! The defaults of kinds of tasks.

use tickover_core::id::{QueueName, TaskKind};
use tickover_wire::Route;
use tickover_wire::answer::{DeletedKindAnswer, KindAnswer, KindsAnswer};
use tickover_wire::request::KindDefaults;

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// The kinds of a queue that have defaults, by name.
    pub async fn kinds(&self, queue: &QueueName) -> Result<KindsAnswer, ClientError> {
        self.ask(Call::of(Route::Kinds, [queue.as_str()])).await
    }

    /// The defaults of a kind. Without any, the error is `not_found`.
    pub async fn kind(&self, queue: &QueueName, kind: &TaskKind) -> Result<KindAnswer, ClientError> {
        self.ask(Call::of(Route::Kind, [queue.as_str(), kind.as_str()])).await
    }

    /// Sets the defaults of a kind, instead of those that it had. They count for tasks that are scheduled afterwards,
    /// within 5 s everywhere, or within a minute if the queue had no defaults before. What a task gives itself goes
    /// before them. All kinds of a queue take at most 3 KiB together.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let (mail, send) = (tickover::QueueName::parse("mail")?, "send".to_owned().try_into()?);
    /// let defaults = serde_json::from_str(r#"{"retry": "exponential(5, 1s)", "timeout": "1h"}"#)?;
    /// client.api().set_kind(&mail, &send, &defaults).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_kind(
        &self,
        queue: &QueueName,
        kind: &TaskKind,
        defaults: &KindDefaults,
    ) -> Result<KindAnswer, ClientError> {
        self.ask(Call::with(Route::SetKind, [queue.as_str(), kind.as_str()], defaults)?.repeatable(true))
            .await
    }

    /// Removes the defaults of a kind. Tasks that exist are not changed.
    pub async fn delete_kind(
        &self,
        queue: &QueueName,
        kind: &TaskKind,
    ) -> Result<DeletedKindAnswer, ClientError> {
        self.ask(Call::of(Route::DeleteKind, [queue.as_str(), kind.as_str()]).repeatable(true)).await
    }
}

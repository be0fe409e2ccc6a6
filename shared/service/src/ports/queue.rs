//! What the service needs from a queue.

use async_trait::async_trait;
use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::{Incarnation, QueueName};
use tickover_core::lane::Lane;
use tickover_core::task::hint::Hint;

/// Why a call to a queue failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueError {
    /// No such queue is configured.
    #[error("there is no queue named {queue:?}")]
    Unknown {
        /// The logical name.
        queue: String,
    },
    /// The receipt is not valid, or no longer. The message will be received again, or is deleted.
    #[error("the receipt is no longer valid")]
    StaleReceipt,
    /// Too many calls at once.
    #[error("the queue is throttling")]
    Throttled,
    /// No answer, or a refusal by the queue's service.
    #[error("the queue can't be reached: {reason}")]
    Unavailable {
        /// For the log; never parsed.
        reason: String,
    },
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub body: String,
    /// How long it stays hidden, at most 15 minutes. A queue that counts whole seconds rounds down.
    pub delay: Millis,
    /// Where it stands among the messages of its queue.
    pub lane: Lane,
}

impl Outgoing {
    /// A message that asks for no order.
    pub fn plain(body: impl Into<String>, delay: Millis) -> Self {
        Self { body: body.into(), delay, lane: Lane::default() }
    }

    /// A message that is sent once more: a task's hint stands where its record says.
    pub fn again(body: impl Into<String>, delay: Millis) -> Self {
        let body = body.into();
        Self { lane: Hint::lane_of(&body), body, delay }
    }
}

/// A message in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub body: String,
    /// Deletes the message or changes its visibility.
    pub receipt: String,
    /// How often it has been received, this time included.
    pub receive_count: u32,
}

/// About how many messages a queue has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Waiting to be received.
    pub visible: u64,
    /// Received, neither deleted nor visible again.
    pub in_flight: u64,
    /// Not visible yet, because of their delay.
    pub delayed: u64,
}

impl Depth {
    /// Whether the queue has no message at all.
    pub fn is_empty(&self) -> bool {
        self.visible + self.in_flight + self.delayed == 0
    }
}

/// About how many messages wait where those of a priority do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassDepth {
    pub depth: Depth,
    /// Whether messages of this priority wait apart from the normal ones.
    pub apart: bool,
}

/// What the callers of a queue must know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTraits {
    /// Whether delays are whole seconds, rounded down.
    pub counts_seconds: bool,
    /// Whether it finds tasks that are pending in the store by itself.
    pub finds_pending: bool,
    /// Whether queues are found by their names, without a list of them: a queue that the adapter knows may not exist.
    /// [`open`](Queue::open) finds out, and so does each call that sends, receives or counts.
    pub finds_by_name: bool,
}

/// Delivers hints: at least once, in no order.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends messages, in batches as large as the queue takes. One result for each message, in order.
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Result<Vec<Result<(), QueueError>>, QueueError>;

    /// Receives up to `max` (1 to 100) messages and hides them from others for `visibility`; waits up to `wait` (at most
    /// 20 s) for the first one. SQS returns at most 10.
    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError>;

    /// Deletes a message. Deleting it twice is no error.
    async fn delete(&self, queue: &QueueName, receipt: &str) -> Result<(), QueueError>;

    /// Hides a message in flight for that long from now; zero makes it visible at once.
    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> Result<(), QueueError>;

    /// Deletes messages. Deleting one twice is no error.
    async fn delete_all(&self, queue: &QueueName, receipts: &[String]) -> Result<(), QueueError> {
        let deleted = join_all(receipts.iter().map(|receipt| self.delete(queue, receipt))).await;
        deleted.into_iter().collect()
    }

    /// Hides messages in flight for that long from now; skips those whose receipt is stale.
    async fn hide_all(
        &self,
        queue: &QueueName,
        receipts: &[String],
        visibility: Millis,
    ) -> Result<(), QueueError> {
        let hide = receipts.iter().map(|receipt| self.change_visibility(queue, receipt, visibility));
        let hidden = join_all(hide).await.into_iter();
        hidden.filter(|hidden| !matches!(hidden, Err(QueueError::StaleReceipt))).collect()
    }

    /// Notes that a record's messages have no use any more. A queue that can find them removes them, so that they don't
    /// count in its depth. In other queues, also in SQS, they stay until a worker receives them.
    fn forget(&self, _queue: &QueueName, _of: Incarnation) {}

    /// About how many messages there are.
    async fn depth(&self, queue: &QueueName) -> Result<Depth, QueueError>;

    /// About how many messages there are where those of a priority wait.
    async fn class_depth(&self, queue: &QueueName, class: Priority) -> Result<ClassDepth, QueueError>;

    /// The class queue in which the message of this receipt waited; the normal one if it waited among all others. That
    /// it was received says nothing about messages of other classes.
    fn class_of(&self, receipt: &str) -> Priority;

    /// Creates a queue if this adapter can. Returns whether the queue exists now.
    async fn open(&self, queue: &QueueName) -> Result<bool, QueueError>;

    /// What its callers must know of it. There is no default, so that no decorator forgets to pass it on.
    fn traits(&self) -> QueueTraits;

    /// Whether the queue exists; if queues are found by their names, whether it can exist.
    fn knows(&self, queue: &QueueName) -> bool;

    /// All queues, by name; if queues are found by their names, those that were found.
    fn names(&self) -> Vec<QueueName>;

    /// All queues of tasks that there are, by name, also those that nobody has used. It may be slow, and miss a queue
    /// that was made a moment ago.
    async fn discover(&self) -> Result<Vec<QueueName>, QueueError>;
}

//! What every queue must do, as named cases that each adapter runs with [`check`].
//!
//! The cases require no more than SQS promises: no order, whole seconds, depths that become right in the end. They wait
//! by the given clock, so a virtual one makes them instantaneous. They require two behaviours that SQS only shows
//! nearly always: no message comes twice, and each comes within seconds.

mod depth;
mod receipts;
mod sending;
mod visibility;
mod waiting;

use std::collections::BTreeSet;
use std::fmt;

use futures::future::{BoxFuture, join_all};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;

use tickover_service::ports::{Clock, Outgoing, Queue, QueueError, Received};

/// A queue that must not exist where the cases run.
pub(crate) const ABSENT: &str = "conformance-absent";

/// Longer than any case takes.
const LONG: Millis = Millis::from_secs(120);

/// How long a visible message may take to arrive, and how long a case waits for one that must not come.
const TIMEOUT: Millis = Millis::from_secs(20);

/// Why a case failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The case observed something else.
    #[error("{0}")]
    Observed(String),
    /// The queue didn't answer.
    #[error("no answer: {0}")]
    Queue(#[from] QueueError),
}

type Outcome = Result<(), Failure>;

/// Fails the case with what was observed unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($observed:tt)+) => {
        if !$condition {
            return Err($crate::queue::Failure::Observed(format!($($observed)+)));
        }
    };
}
use ensure;

/// A behaviour, and its test.
struct Case {
    name: &'static str,
    run: for<'a> fn(&'a Subject<'a>) -> BoxFuture<'a, Outcome>,
}

macro_rules! cases {
    ($($module:ident::$case:ident,)+) => {
        &[$(Case { name: stringify!($case), run: |subject| Box::pin($module::$case(subject)) },)+]
    };
}

const CASES: &[Case] = cases![
    sending::a_message_is_sent_received_and_deleted,
    sending::a_batch_of_25_arrives_whole,
    sending::nothing_to_send_is_no_error,
    sending::bodies_survive_unchanged,
    sending::no_more_is_received_than_asked_for,
    sending::two_receivers_never_get_the_same_message,
    visibility::a_received_message_is_hidden_then_visible_again,
    visibility::a_visibility_of_zero_shows_a_message_at_once,
    visibility::a_longer_visibility_keeps_a_message_hidden,
    visibility::a_delayed_message_is_hidden_for_its_delay,
    visibility::the_receive_count_grows,
    receipts::deleting_twice_is_no_error,
    receipts::a_message_that_came_back_can_be_deleted,
    receipts::the_receipt_of_a_deleted_message_is_stale,
    receipts::a_made_up_receipt_is_stale_and_deletes_nothing,
    waiting::an_empty_queue_answers_nothing,
    waiting::a_long_poll_ends_when_a_message_comes,
    waiting::a_long_poll_ends_when_a_delay_does,
    depth::every_message_is_counted_once,
    depth::a_known_queue_opens_and_is_listed,
    depth::an_unknown_queue_is_unknown_to_every_call,
];

/// The cases that failed, and why.
#[derive(Debug)]
pub(crate) struct Failures(Vec<(&'static str, Failure)>);

impl fmt::Display for Failures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {} cases failed", self.0.len(), CASES.len())?;
        self.0.iter().try_for_each(|(case, failure)| write!(formatter, "\n{case}: {failure}"))
    }
}

impl std::error::Error for Failures {}

/// The queues that [`check`] needs, one for each case. Each must be empty, and exist unless opening makes it.
pub(crate) fn queue_names() -> Vec<QueueName> {
    CASES.iter().map(Case::queue).collect()
}

/// Runs all cases at the same time, each on its own queue. Takes a few seconds by the clock.
pub(crate) async fn check(queue: &dyn Queue, clock: &dyn Clock) -> Result<(), Failures> {
    let outcomes = join_all(CASES.iter().map(async |case| {
        let subject = Subject { queue, clock, name: case.queue() };
        subject.queue.open(&subject.name).await?;
        (case.run)(&subject).await
    }));
    let failures: Vec<_> = CASES
        .iter()
        .zip(outcomes.await)
        .filter_map(|(case, outcome)| outcome.err().map(|failure| (case.name, failure)))
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}

impl Case {
    fn queue(&self) -> QueueName {
        name(self.name)
    }
}

#[expect(clippy::expect_used, reason = "the names are constants, and every run of the suite parses them all")]
fn name(text: &str) -> QueueName {
    QueueName::parse(text).expect("cases have short names of letters and underscores")
}

/// A queue under test, with the operations that cases use most.
struct Subject<'a> {
    queue: &'a dyn Queue,
    clock: &'a dyn Clock,
    name: QueueName,
}

impl Subject<'_> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn send(&self, bodies: &[&str], delay: Millis) -> Outcome {
        let messages: Vec<_> = bodies.iter().map(|body| Outgoing::plain(*body, delay)).collect();
        let results = self.queue.send(&self.name, &messages).await?;
        ensure!(results.len() == bodies.len(), "{} results for {} messages", results.len(), bodies.len());
        results.into_iter().collect::<Result<(), _>>().map_err(Failure::Queue)
    }

    async fn receive(&self, max: usize, visibility: Millis, wait: Millis) -> Result<Vec<Received>, Failure> {
        Ok(self.queue.receive(&self.name, max, visibility, wait).await?)
    }

    /// The one message that must arrive soon.
    async fn receive_one(&self, visibility: Millis) -> Result<Received, Failure> {
        let mut received = self.receive(1, visibility, TIMEOUT).await?;
        ensure!(received.len() == 1, "{} messages came where one was expected", received.len());
        Ok(received.remove(0))
    }

    /// Receives until so many different messages have arrived. Fails if one comes twice or too few come.
    async fn receive_all(&self, count: usize) -> Result<Vec<Received>, Failure> {
        let mut all: Vec<Received> = Vec::new();
        while all.len() < count {
            let some = self.receive(10, LONG, TIMEOUT).await?;
            ensure!(!some.is_empty(), "only {} of {count} messages came", all.len());
            all.extend(some);
        }
        let different: BTreeSet<_> = all.iter().map(|received| &received.body).collect();
        ensure!(different.len() == all.len(), "{} messages came, {} different", all.len(), different.len());
        Ok(all)
    }

    /// Fails if a message arrives at once or within `wait`.
    async fn expect_nothing(&self, wait: Millis) -> Outcome {
        let received = self.receive(10, Millis::ZERO, wait).await?;
        ensure!(received.is_empty(), "{} messages came where none was expected", received.len());
        Ok(())
    }

    async fn delete(&self, receipt: &str) -> Outcome {
        Ok(self.queue.delete(&self.name, receipt).await?)
    }

    async fn change_visibility(&self, receipt: &str, visibility: Millis) -> Result<(), QueueError> {
        self.queue.change_visibility(&self.name, receipt, visibility).await
    }
}

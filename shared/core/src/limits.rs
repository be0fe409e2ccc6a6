//! Every bound in one place, but for the lengths of names, which stand beside their types in [`crate::id`].
//!
//! Fixed ones are constants, because stored records depend on them: with all of them at their maximum at once, a record
//! still keeps its byte budget through a whole life. The rest is [`Limits`], which a deployment may set.

use crate::duration::Millis;
use crate::error::Reject;

pub use crate::id::{
    EVENT_ID_MAX, EVENT_NAME_MAX, EXECUTION_ID_MAX, ID_MAX, KIND_MAX, QUEUE_NAME_MAX, STEP_NAME_MAX,
    WORKER_MAX, WORKFLOW_MAX,
};

/// Longest error code, in bytes.
pub const ERROR_CODE_MAX: usize = 64;
/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_MAX: usize = 256;

/// Largest control record, in bytes as `DynamoDB` counts them: one write unit, however large the payloads.
pub const CONTROL_RECORD_BYTES: usize = 1024;
/// Attempts a record remembers.
pub const ATTEMPTS_KEPT: usize = 3;
/// Bytes of an error's message that a remembered attempt keeps.
pub const ATTEMPT_ERROR_BYTES: usize = 120;
/// Bytes of the last error's message that the record itself keeps; a longer one goes to a blob at the close.
pub const ERROR_BYTES: usize = 240;

/// Longest delay that SQS takes with a message.
pub const QUEUE_DELAY_MAX: Millis = Millis::from_secs(900);
/// Longest timeout, delay or backoff: one year.
pub const SPAN_MAX: Millis = Millis::from_secs(365 * 86_400);
/// Shortest and longest lease; the longest is the longest visibility timeout of SQS.
pub const LEASE_RANGE: (Millis, Millis) = (Millis::from_secs(1), Millis::from_secs(12 * 3600));
/// Longest long poll of a claim, as in SQS.
pub const WAIT_MAX: Millis = Millis::from_secs(20);
/// Shortest timeout of an execution, of a run, or of a workflow's code for failures.
pub const RUN_TIMEOUT_MIN: Millis = Millis::from_secs(1);
/// Most labels of a task or an execution.
pub const LABELS_MAX: usize = 16;
/// Longest name of a label, in characters.
pub const LABEL_NAME_MAX: usize = 64;
/// Longest value of a label, in characters.
pub const LABEL_VALUE_MAX: usize = 256;
/// Most records on a page of a list.
pub const PAGE_MAX: usize = 500;
/// Records on a page that doesn't say how many.
pub const PAGE_DEFAULT: usize = 50;
/// Most tasks one claim takes, as SQS hands out.
pub const CLAIM_MAX: usize = 10;
/// How deep JSON may nest.
pub const JSON_DEPTH_MAX: usize = 64;

/// Limits and defaults that a deployment may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest input or output in bytes. `DynamoDB` takes items of 400 KiB, this leaves room for the rest.
    pub payload_bytes: usize,
    /// Largest set of labels in bytes of their JSON.
    pub labels_bytes: usize,
    /// Most entries in a batch.
    pub batch: usize,
    /// Lease for a claim that asks for none.
    pub lease: Millis,
    /// How long a finished record stays readable.
    pub retention: Millis,
    /// Workers that may be lost in a row before the task counts as poisoned.
    pub losses: u32,
    /// How long after a record needed a hint the tick looks whether it was lost, at first.
    pub backstop: Millis,
    /// The longest that interval grows, and the age at which a hint is sent again whatever the queue looks like.
    pub backstop_max: Millis,
    /// How long an idempotency key is kept at least.
    pub idempotency: Millis,
    /// Shards that new records are spread over in the due index.
    pub due_shards: u16,
    /// Most entries in the journal of one run: steps, sleeps, waits, captures and events together.
    pub journal_entries: usize,
    /// Most steps that one call of `join_all` and its like may have.
    pub fan_out: usize,
    /// Most events that may wait for an execution to take them.
    pub pending_events: usize,
    /// Most steps and children of one execution that may be open at once.
    pub open_steps: usize,
    /// Largest memo in bytes of its JSON.
    pub memo_bytes: usize,
    /// Turns in a row that may end without progress before the execution counts as poisoned.
    pub idle_turns: u32,
    /// Whether the trace that work belongs to is kept with it and handed on.
    pub carry_trace: bool,
}

/// How much longer what a parent looks at is kept than other records: a parent that is paused, stuck or without
/// workers has this much time on top of the retention to see how its steps and children ended.
pub const KEPT_FOR_PARENT: Millis = Millis::from_secs(30 * 86_400);

impl Limits {
    /// How long a record is kept after its end.
    pub const fn kept(&self, has_parent: bool) -> Millis {
        if has_parent { self.retention.saturating_add(KEPT_FOR_PARENT) } else { self.retention }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: 350 * 1024,
            labels_bytes: 4 * 1024,
            batch: 100,
            lease: Millis::from_secs(60),
            retention: Millis::from_secs(30 * 86_400),
            losses: 3,
            backstop: Millis::from_secs(600),
            backstop_max: Millis::from_secs(6 * 3600),
            idempotency: Millis::from_secs(86_400),
            due_shards: 16,
            journal_entries: 10_000,
            fan_out: 1_000,
            pending_events: 1_000,
            open_steps: 2_000,
            memo_bytes: 4 * 1024,
            idle_turns: 10,
            carry_trace: false,
        }
    }
}

/// Refuses a value above its limit with an error that names the limit, the value and the maximum.
pub fn check(limit: &'static str, value: usize, maximum: usize) -> Result<(), Reject> {
    if value > maximum {
        return Err(Reject::LimitExceeded { limit, value, maximum });
    }
    Ok(())
}

//! The words that fields take. A test holds them to the words that the server reads.

use utoipa::ToSchema;

/// What `timeout` is about.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutScope {
    /// The whole life.
    Global,
    /// Each attempt.
    PerAttempt,
}

/// What an attempt's timeouts do.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Another attempt, while any are left.
    Retry,
    /// The end.
    Terminal,
}

/// How delays are spread.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// They are exact.
    None,
    /// Uniform between zero and the delay.
    Full,
}

/// What happens if an id is taken.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartPolicy {
    /// The execution that has it is the answer.
    UseExisting,
    /// The start is refused.
    RejectDuplicate,
}

/// What becomes of an occurrence while an earlier run is open.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is skipped.
    Skip,
    /// It waits, unless another one does.
    BufferOne,
    /// It waits.
    BufferAll,
    /// It starts.
    AllowAll,
    /// The open run is cancelled first.
    CancelOther,
    /// The open run is ended first.
    TerminateOther,
}

/// What becomes of occurrences that nobody saw in time.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They are skipped.
    Skip,
    /// One run is started for all.
    RunOnce,
}

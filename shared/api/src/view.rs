//! How answers look: the JSON shapes, made from records. What doesn't apply is absent, never `null`.

mod answers;
mod attempt;
mod crons;
mod execution;
mod queue;
mod task;
mod verbatim;

pub use answers::{
    BatchAnswer, BatchResult, CancelAnswer, ClaimAnswer, HealthAnswer, HeartbeatAnswer, ListAnswer,
    QueueAnswer, QueuesAnswer, TaskAnswer,
};
pub use attempt::{AttemptView, ErrorView};
pub use crons::{CronAnswer, CronView, CronsAnswer, DeletedAnswer, RunView, TriggerAnswer};
pub use execution::{
    CauseView, ClearEventsAnswer, EventView, EventsAnswer, ExecutionAnswer, ExecutionCancelAnswer,
    ExecutionChangeAnswer, ExecutionView, ExecutionsAnswer, FailingView, ParentView, SendEventAnswer,
    TimelineAnswer, TimelineEntryView, WaitView, timeline,
};
pub use queue::QueueView;
pub use task::{ClaimedView, NextView, TaskView};
pub use verbatim::Verbatim;

//! Answers of the server. A field that doesn't apply is absent, never `null`. Instants are in UTC with milliseconds.

mod by;
mod callback;
mod cron;
mod derived;
mod execution;
mod history;
mod limit;
mod operation;
mod overview;
mod problem;
mod task;
mod timeline;
mod turn;
mod worker;

pub use by::ByView;
pub use callback::{CallbackAnswer, ReceivedAnswer};
pub use cron::{
    CronAnswer, CronStatus, CronView, CronsAnswer, DeletedAnswer, OccurrenceView, RunState, RunView,
    TriggerAnswer,
};
pub use execution::{
    CauseCategory, CauseView, ClearEventsAnswer, EXPORT_FORMAT, EarlierRunView, EventView, EventsAnswer,
    ExecutionAnswer, ExecutionCancelAnswer, ExecutionChangeAnswer, ExecutionView, ExecutionsAnswer,
    ExportAnswer, FailingView, ParentView, RunsAnswer, SendEventAnswer, TimelineAnswer, ValueAnswer,
    ValueView, ValuesAnswer, WaitKind, WaitView, WorkflowView, WorkflowsAnswer,
};
pub use history::{HistoryAnswer, HistoryPartView};
pub use limit::{
    LimitAnswer, LimitHolderView, LimitOwnerView, LimitView, LimitsAnswer, RateView, WaitsAtView,
};
pub use operation::{
    OperationAnswer, OperationChangeAnswer, OperationStatus, OperationView, OperationsAnswer,
};
pub use overview::{
    CountView, ExecutionNumbersView, FailureGroupView, FailuresAnswer, OverviewAnswer, QueueNumbersView,
    TaskNumbersView,
};
pub use problem::Problem;
pub use task::{
    AttemptOutcome, AttemptView, BatchAnswer, BatchResult, CancelAnswer, CancelOutcome, ClaimAnswer,
    ClaimedView, DeletedKindAnswer, ErrorView, Health, HealthAnswer, HeartbeatAnswer, KindAnswer, KindView,
    KindsAnswer, ListAnswer, NextView, QueueAnswer, QueueView, QueuesAnswer, TaskAnswer, TaskView,
    TimeoutView, TimeoutsView,
};
pub use timeline::TimelineEntryView;
pub use turn::{
    AskedLimitsView, OutcomeView, StartedView, TurnAnswer, TurnCancelAnswer, TurnLimitsView,
    TurnPayloadAnswer, TurnStartAnswer, WorkAnswer, WorkTaskView, WorkTurnView,
};
pub use worker::{QueueWorkersView, WorkerView, WorkersAnswer};

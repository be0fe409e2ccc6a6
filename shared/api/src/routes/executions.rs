//! Executions, for callers that start and operate them.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls::executions;
use crate::http::{JsonBody, Name, Names, QueryPairs};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::{ExecutionId, StepName};
#[cfg(feature = "schema")]
use tickover_wire::answer::{
    ExecutionAnswer, ExecutionCancelAnswer, ExecutionChangeAnswer, ExecutionsAnswer, ExportAnswer,
    Problem as ProblemBody, RunsAnswer, TimelineAnswer, WorkflowsAnswer,
};
#[cfg(feature = "schema")]
use tickover_wire::request::{
    ExecutionsQuery, ExportQuery, Nothing, PageQuery, RerunRequest, StartRequest, TimelineQuery, WaitQuery,
};

/// Start an execution.
///
/// `id` makes the call idempotent: if an execution with this id exists, it is the answer, unless `policy` says
/// otherwise.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions",
    tag = "executions",
    request_body = StartRequest,
    responses(
        (status = 201, description = "The execution is started.", body = ExecutionAnswer),
        (status = 200, description = "There is one of this id.", body = ExecutionAnswer),
        CallProblems,
    ),
))]
pub(super) async fn start(State(service): State<Service>, body: JsonBody) -> Result<Answer, Problem> {
    executions::start(&service, body.call()).await
}

/// Describe an execution.
///
/// The answer has its payloads, all its instants, what it waits for, what happens next without any call, and when. With
/// `wait`, the call answers when the execution has its outcome or when that time has passed.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/executions/{id}",
    tag = "executions",
    operation_id = "describe_execution",
    params(
        ("id" = ExecutionId, Path, description = "The execution's id."),
        WaitQuery,
    ),
    responses(
        (status = 200, description = "The execution.", body = ExecutionAnswer),
        (status = 202, description = "It was waited for and hasn't ended yet.", body = ExecutionAnswer),
        ReadProblems,
    ),
))]
pub(super) async fn describe(
    State(service): State<Service>,
    id: Name,
    query: QueryPairs,
) -> Result<Answer, Problem> {
    executions::describe(&service, &id.0, &query.0).await
}

/// List executions of a workflow, latest first.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/executions",
    tag = "executions",
    operation_id = "list_executions",
    params(ExecutionsQuery),
    responses((status = 200, description = "A page of executions.", body = ExecutionsAnswer), ReadProblems),
))]
pub(super) async fn list(State(service): State<Service>, query: QueryPairs) -> Result<Answer, Problem> {
    executions::list(&service, &query.0).await
}

/// Export a run of an execution, the current one by default, so that its code can be replayed elsewhere.
///
/// The answer has the record and the journal as they are stored. The command-line tool joins its parts to one file.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/executions/{id}/export",
    tag = "executions",
    params(
        ("id" = ExecutionId, Path, description = "The execution's id."),
        ExportQuery,
    ),
    responses((status = 200, description = "A part of the export.", body = ExportAnswer), ReadProblems),
))]
pub(super) async fn export(
    State(service): State<Service>,
    id: Name,
    query: QueryPairs,
) -> Result<Answer, Problem> {
    executions::export(&service, &id.0, &query.0).await
}

/// List all workflows with the number of executions of each status.
///
/// A local server counts all of them. A deployment on AWS with `TICKOVER_LISTS=all` reads its latest 1,000 executions for
/// each answer, 1,320 read units, and `complete` says whether those are all. Without that option it has no list to
/// read: 501.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/workflows",
    tag = "executions",
    responses(
        (status = 200, description = "The workflows, by name.", body = WorkflowsAnswer),
        (status = 501, description = "`not_kept`: this deployment has no list of all executions.", body = ProblemBody,
            content_type = "application/problem+json"),
        ReadProblems,
    ),
))]
pub(super) async fn workflows(State(service): State<Service>) -> Result<Answer, Problem> {
    executions::workflows(&service).await
}

/// Show what happened to an execution.
///
/// The answer has its start, the steps, sleeps, waits, events, fan-outs and children of a run, the current one by
/// default, and its end.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/executions/{id}/timeline",
    tag = "executions",
    params(("id" = ExecutionId, Path, description = "The execution's id."), TimelineQuery),
    responses((status = 200, description = "What happened.", body = TimelineAnswer), ReadProblems),
))]
pub(super) async fn timeline(
    State(service): State<Service>,
    id: Name,
    query: QueryPairs,
) -> Result<Answer, Problem> {
    executions::timeline_of(&service, &id.0, &query.0).await
}

/// List the earlier runs of an execution, latest first.
///
/// `continue_as_new`, a restart and a rerun each start another run. An earlier run is kept for as long as the execution
/// would have been kept if it had ended then.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/executions/{id}/runs",
    tag = "executions",
    params(("id" = ExecutionId, Path, description = "The execution's id."), PageQuery),
    responses((status = 200, description = "Its earlier runs.", body = RunsAnswer), ReadProblems),
))]
pub(super) async fn runs(
    State(service): State<Service>,
    id: Name,
    query: QueryPairs,
) -> Result<Answer, Problem> {
    executions::runs(&service, &id.0, &query.0).await
}

/// Cancel an execution.
///
/// Its code stops at its next step, its undo steps run, and then its `on_cancel`. An execution that sleeps or waits and has
/// nothing to undo ends at once. Code that handles a failure goes on.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/cancel",
    tag = "executions",
    operation_id = "cancel_execution",
    params(("id" = ExecutionId, Path, description = "The execution's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "What became of it.", body = ExecutionCancelAnswer), CallProblems),
))]
pub(super) async fn cancel(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::cancel(&service, &id.0, &body.0).await
}

/// Terminate an execution: it ends at once, even while its code runs.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/terminate",
    tag = "executions",
    params(("id" = ExecutionId, Path, description = "The execution's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "What became of it.", body = ExecutionCancelAnswer), CallProblems),
))]
pub(super) async fn terminate(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::terminate(&service, &id.0, &body.0).await
}

/// Pause an execution.
///
/// It starts nothing new until it is resumed. Its deadlines still apply.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/pause",
    tag = "executions",
    operation_id = "pause_execution",
    params(("id" = ExecutionId, Path, description = "The execution's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "It is paused.", body = ExecutionChangeAnswer), CallProblems),
))]
pub(super) async fn pause(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::pause(&service, &id.0, &body.0).await
}

/// Resume a paused execution.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/resume",
    tag = "executions",
    operation_id = "resume_execution",
    params(("id" = ExecutionId, Path, description = "The execution's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "It goes on.", body = ExecutionChangeAnswer), CallProblems),
))]
pub(super) async fn resume(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::resume(&service, &id.0, &body.0).await
}

/// Restart an execution that has ended: a new run with the same input and new deadlines.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/restart",
    tag = "executions",
    params(("id" = ExecutionId, Path, description = "The execution's id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "Its new run waits.", body = ExecutionAnswer), CallProblems),
))]
pub(super) async fn restart(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::restart(&service, &id.0, &body.0).await
}

/// Rerun an execution that has ended, with results of its last run.
///
/// It starts a new run with new deadlines. Steps that failed run again, and so do the steps that the request names.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/rerun",
    tag = "executions",
    params(("id" = ExecutionId, Path, description = "The execution's id.")),
    request_body = Option<RerunRequest>,
    responses((status = 200, description = "Its new run waits.", body = ExecutionAnswer), CallProblems),
))]
pub(super) async fn rerun(
    State(service): State<Service>,
    id: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::rerun(&service, &id.0, &body.0).await
}

/// Retry the step because of which an execution failed.
///
/// It goes on in the same run, and the results of other steps stay. The call is rejected if the execution's own
/// deadline has passed.
#[cfg_attr(feature = "schema", utoipa::path(
    post,
    path = "/v1/executions/{id}/steps/{name}/retry",
    tag = "executions",
    params(
        ("id" = ExecutionId, Path, description = "The execution's id."),
        ("name" = StepName, Path, description = "The step's name, such as `charge` or `label[3]`."),
    ),
    request_body = Option<Nothing>,
    responses((status = 200, description = "The run goes on.", body = ExecutionAnswer), CallProblems),
))]
pub(super) async fn retry_step(
    State(service): State<Service>,
    names: Names,
    body: JsonBody,
) -> Result<Answer, Problem> {
    executions::retry_step(&service, &names.0, &names.1, &body.0).await
}

//! Concurrency limits by key, for operators.

use axum::extract::State;
use tickover_service::Service;

use crate::answer::Answer;
use crate::calls;
use crate::http::{JsonBody, Name, Names, NoBody};
use crate::problem::Problem;

#[cfg(feature = "schema")]
use crate::openapi::{CallProblems, ReadProblems};
#[cfg(feature = "schema")]
use tickover_core::id::{FlowKey, Owner};
#[cfg(feature = "schema")]
use tickover_wire::answer::LimitAnswer;
#[cfg(feature = "schema")]
use tickover_wire::request::LimitRequest;

/// Show a key's limit: who has its places, and who waits.
///
/// A key that no task has needed for an hour has no limit and nobody who waits.
#[cfg_attr(feature = "schema", utoipa::path(
    get,
    path = "/v1/limits/{key}",
    tag = "limits",
    params(("key" = FlowKey, Path, description = "The key. Each byte that isn't of `[A-Za-z0-9._:@-]` is `~` and two hexadecimal digits, and so are the dots of `.` and `..`: a gateway may decode percent-encoding before.")),
    responses((status = 200, description = "The limit.", body = LimitAnswer), ReadProblems),
))]
pub(super) async fn limit(State(service): State<Service>, key: Name) -> Result<Answer, Problem> {
    calls::limit(&service, &key.0).await
}

/// Set a key's limit, whatever tasks ask for.
///
/// It counts from the next place that is taken or given on. A lower limit takes no place away.
#[cfg_attr(feature = "schema", utoipa::path(
    put,
    path = "/v1/limits/{key}",
    tag = "limits",
    params(("key" = FlowKey, Path, description = "The key. Each byte that isn't of `[A-Za-z0-9._:@-]` is `~` and two hexadecimal digits, and so are the dots of `.` and `..`: a gateway may decode percent-encoding before.")),
    request_body = LimitRequest,
    responses((status = 200, description = "The limit is set.", body = LimitAnswer), CallProblems),
))]
pub(super) async fn set_limit(
    State(service): State<Service>,
    key: Name,
    body: JsonBody,
) -> Result<Answer, Problem> {
    calls::set_limit(&service, &key.0, &body.0).await
}

/// Give a key's limit back to the tasks: the latest task's limit counts again.
#[cfg_attr(feature = "schema", utoipa::path(
    delete,
    path = "/v1/limits/{key}",
    tag = "limits",
    params(("key" = FlowKey, Path, description = "The key. Each byte that isn't of `[A-Za-z0-9._:@-]` is `~` and two hexadecimal digits, and so are the dots of `.` and `..`: a gateway may decode percent-encoding before.")),
    responses((status = 200, description = "The limit is no longer set.", body = LimitAnswer), CallProblems),
))]
pub(super) async fn unset_limit(
    State(service): State<Service>,
    key: Name,
    _: NoBody,
) -> Result<Answer, Problem> {
    calls::unset_limit(&service, &key.0).await
}

/// Take its place at a key from a task or an execution.
///
/// The next one gets it. The one that had it goes on: more than the limit may then run.
#[cfg_attr(feature = "schema", utoipa::path(
    delete,
    path = "/v1/limits/{key}/holders/{holder}",
    tag = "limits",
    params(
        ("key" = FlowKey, Path, description = "The key. Each byte that isn't of `[A-Za-z0-9._:@-]` is `~` and two hexadecimal digits, and so are the dots of `.` and `..`: a gateway may decode percent-encoding before."),
        ("holder" = Owner, Path, description = "The id of a task, or `@` and that of an execution."),
    ),
    responses((status = 200, description = "The place is free, or the next one has it.", body = LimitAnswer), CallProblems),
))]
pub(super) async fn release_place(
    State(service): State<Service>,
    names: Names,
    _: NoBody,
) -> Result<Answer, Problem> {
    calls::release_place(&service, &names.0, &names.1).await
}

/// Forget all starts by a key's rate: the next one comes at once.
///
/// Whoever has a start reserved comes at its instant as before, and gets another one then.
#[cfg_attr(feature = "schema", utoipa::path(
    delete,
    path = "/v1/limits/{key}/rate",
    tag = "limits",
    params(("key" = FlowKey, Path, description = "The key. Each byte that isn't of `[A-Za-z0-9._:@-]` is `~` and two hexadecimal digits, and so are the dots of `.` and `..`: a gateway may decode percent-encoding before.")),
    responses((status = 200, description = "Nothing of the rate is used.", body = LimitAnswer), CallProblems),
))]
pub(super) async fn reset_rate(
    State(service): State<Service>,
    key: Name,
    _: NoBody,
) -> Result<Answer, Problem> {
    calls::reset_rate(&service, &key.0).await
}

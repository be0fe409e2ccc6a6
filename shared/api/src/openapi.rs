//! Generates the `OpenAPI` document from the table of calls. Only tests and the example `openapi` need it: the server sends a
//! file.

use std::collections::BTreeMap;

use tickover_core::id::Owner;
use tickover_wire::answer::Problem;
use tickover_wire::request::{ExecutionStatuses, TaskStatuses};
use tickover_wire::{
    Cursor, Documented, FailureCode, Instant, Label, PageLimit, Route, RunNumber, ValueVersion, Wait,
};
use utoipa::OpenApi;
use utoipa::openapi::{ContentBuilder, HttpMethod, Ref, RefOr, Response, ResponseBuilder};

mod alternatives;
mod nullability;
mod spellings;

/// The parts of the document that aren't of one route.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tickover",
        description = "Durable tasks and workflows with real deadlines on Lambda, DynamoDB and SQS.\n\n\
            Bodies are JSON. Instants are RFC 3339 in UTC with milliseconds. Durations are strings such as \
            `\"1h 30m\"` (units `ms`, `s`, `m`, `h`, `d` and their long forms) or whole milliseconds. Errors are \
            problem details (RFC 9457) with a stable `code`."
    ),
    tags(
        (name = "tasks", description = "Schedule, read and operate tasks."),
        (name = "workers", description = "Claim tasks and report on them."),
        (name = "turns", description = "Run workflows in a program of your own: their turns."),
        (name = "executions", description = "Start, read and operate executions of workflows."),
        (name = "queues", description = "See and pause queues."),
        (name = "limits", description = "See and set how many tasks and executions of a key run at once."),
        (name = "crons", description = "Work started again and again, by a cron expression or at an interval."),
        (name = "system", description = "The server itself."),
    ),
    components(schemas(
        Problem,
        PageLimit,
        RunNumber,
        ValueVersion,
        Cursor,
        Wait,
        TaskStatuses,
        ExecutionStatuses,
        Label,
        FailureCode,
        Instant,
        Owner
    )),
)]
struct Base;

/// The document's text. `openapi.json` must be equal to it.
pub fn document() -> String {
    // Maps with string keys only: it always serialises.
    let mut document = Base::openapi();
    for route in Route::ALL {
        let Documented { mut operation, schemas } = route.documented();
        operation.responses.responses.extend(problems(*route));
        let method = match route.method() {
            "GET" => HttpMethod::Get,
            "PUT" => HttpMethod::Put,
            "DELETE" => HttpMethod::Delete,
            _ => HttpMethod::Post,
        };
        document.paths.add_path_operation(route.path(), vec![method], operation);
        document.components.get_or_insert_default().schemas.extend(schemas);
    }
    spellings::as_numbers(&mut document);
    nullability::never_null(&mut document);
    alternatives::may_overlap(&mut document);
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

const INVALID: (u16, &str) = (400, "`invalid_request`: `field` says what is wrong.");
const FORBIDDEN: (u16, &str) = (
    403,
    "`foreign_machine`, `foreign_host` or `foreign_origin`, from a local server: the call comes from another machine, or may come from a page of another site. \
     `foreign_route`, from API Gateway: an operator's call that didn't come by the call's own route.",
);
const SLOW: (u16, &str) = (408, "`request_timeout`, from a local server: the body was not sent in time.");
const ABSENT: (u16, &str) = (404, "`not_found`, `unknown_queue`, `unknown_step` or `unknown_value`.");
const CONFLICT: (u16, &str) = (
    409,
    "`id_conflict`, `not_unique`, `lease_lost`, `deadline_exceeded`, `already_terminal` or `not_terminal`: nothing changed.",
);
const LIMIT: (u16, &str) = (413, "`limit_exceeded`: `limit`, `value` and `maximum` say which.");
const MEDIA_TYPE: (u16, &str) =
    (415, "`unsupported_media_type`: the request doesn't say that its body is JSON, however empty.");
const THROTTLED: (u16, &str) = (429, "`throttled`: repeat it after `Retry-After` seconds.");
const BROKEN: (u16, &str) = (500, "`internal` or `corrupt_record`.");
const UNAVAILABLE: (u16, &str) =
    (503, "`unavailable` or `contended`: repeating it after `Retry-After` seconds is safe.");

const NOT_KEPT: (u16, &str) =
    (501, "`not_kept`: this deployment keeps no list of all executions, or no history of its own.");

/// The errors of a call that changes something, and so has a body.
const OF_CHANGES: &[(u16, &str)] =
    &[INVALID, FORBIDDEN, ABSENT, SLOW, CONFLICT, LIMIT, MEDIA_TYPE, THROTTLED, BROKEN, UNAVAILABLE];
/// The errors of a call that only reads.
const OF_READS: &[(u16, &str)] = &[INVALID, FORBIDDEN, ABSENT, THROTTLED, BROKEN, UNAVAILABLE];

/// The errors of a call.
fn problems(route: Route) -> BTreeMap<String, RefOr<Response>> {
    let known = match route {
        Route::Health | Route::Document => &[],
        _ if route.changes() => OF_CHANGES,
        _ => OF_READS,
    };
    let more = matches!(route, Route::Workflows | Route::History).then_some(NOT_KEPT);
    let schema = RefOr::<utoipa::openapi::Schema>::Ref(Ref::from_schema_name("Problem"));
    let problem = |description: &str| {
        let content = ContentBuilder::new().schema(Some(schema.clone())).build();
        ResponseBuilder::new().description(description).content("application/problem+json", content).build()
    };
    known.iter().chain(&more).map(|(status, text)| (status.to_string(), problem(text).into())).collect()
}

#[cfg(test)]
mod tests;

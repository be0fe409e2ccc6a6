//! The `OpenAPI` document: made from the routes themselves, so that neither can have what the other hasn't, and kept
//! in a file: making it costs a function's start more than all the rest of it.

use std::collections::BTreeMap;

use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi};

use crate::problem::Problem;
use crate::routes;

mod bounds;

/// What isn't said route by route.
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
        (name = "executions", description = "Start, read and operate executions of workflows."),
        (name = "queues", description = "See and pause queues."),
        (name = "crons", description = "Work started again and again, by a cron expression or at an interval."),
        (name = "system", description = "The server itself."),
    ),
    components(schemas(Problem)),
)]
struct Base;

/// The document without its routes.
pub(crate) fn base() -> utoipa::openapi::OpenApi {
    Base::openapi()
}

/// The document's text, as it is served.
pub(crate) const TEXT: &str = include_str!("../openapi.json");

/// The document's text, made anew: what the file must say.
pub fn document() -> String {
    // Maps of strings only: it always serialises.
    let mut document = routes::documented().into_openapi();
    bounds::apply(&mut document);
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

const INVALID: (u16, &str) = (400, "`invalid_request`: `field` says what is wrong.");
const FORBIDDEN: (u16, &str) = (
    403,
    "`foreign_host` or `foreign_origin`, from a local server: the call may come from a page of another site.",
);
const SLOW: (u16, &str) = (408, "`request_timeout`, from a local server: the body was not sent in time.");
const ABSENT: (u16, &str) = (404, "`not_found`, `unknown_queue` or `unknown_step`.");
const CONFLICT: (u16, &str) = (
    409,
    "`id_conflict`, `lease_lost`, `deadline_exceeded`, `already_terminal` or `not_terminal`: nothing changed.",
);
const LIMIT: (u16, &str) = (413, "`limit_exceeded`: `limit`, `value` and `maximum` say which.");
const MEDIA_TYPE: (u16, &str) =
    (415, "`unsupported_media_type`: the request doesn't say that its body is JSON, however empty.");
const THROTTLED: (u16, &str) = (429, "`throttled`: repeat it after `Retry-After` seconds.");
const BROKEN: (u16, &str) = (500, "`internal` or `corrupt_record`.");
const UNAVAILABLE: (u16, &str) =
    (503, "`unavailable` or `contended`: repeating it after `Retry-After` seconds is safe.");

fn problems(known: &[(u16, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let schema = RefOr::<utoipa::openapi::Schema>::Ref(Ref::from_schema_name("Problem"));
    let problem = |description: &str| {
        let content = ContentBuilder::new().schema(Some(schema.clone())).build();
        ResponseBuilder::new().description(description).content("application/problem+json", content).build()
    };
    known.iter().map(|(status, text)| (status.to_string(), problem(text).into())).collect()
}

/// What can go wrong with a call that has a body.
pub(crate) struct CallProblems;

impl IntoResponses for CallProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            INVALID,
            FORBIDDEN,
            ABSENT,
            SLOW,
            CONFLICT,
            LIMIT,
            MEDIA_TYPE,
            THROTTLED,
            BROKEN,
            UNAVAILABLE,
        ])
    }
}

/// What can go wrong with reading.
pub(crate) struct ReadProblems;

impl IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[INVALID, FORBIDDEN, ABSENT, THROTTLED, BROKEN, UNAVAILABLE])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::parse;

    use super::*;

    fn properties(document: &Value, schema: &str) -> Vec<String> {
        let schema = &document["components"]["schemas"][schema];
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        let mut names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_document_that_is_served_is_that_of_the_routes() {
        let renew = "renew it: cargo run --package tickover-api --example openapi > shared/api/openapi.json";
        assert!(TEXT == document(), "{renew}");
    }

    #[test]
    fn the_document_has_the_very_fields_that_requests_are_read_with() {
        let document: Value = serde_json::from_str(TEXT).unwrap();
        for (schema, read) in [
            ("ScheduleRequest", parse::SCHEDULE_FIELDS),
            ("ScheduleBatchRequest", parse::BATCH_FIELDS),
            ("ClaimRequest", parse::CLAIM_FIELDS),
            ("CompleteRequest", parse::COMPLETE_FIELDS),
            ("CompleteBatchRequest", parse::BATCH_FIELDS),
            ("CompleteBatchEntry", parse::COMPLETE_ENTRY_FIELDS),
            ("FailRequest", parse::FAIL_FIELDS),
            ("FailError", parse::ERROR_FIELDS),
            ("HeartbeatRequest", parse::HEARTBEAT_FIELDS),
            ("ReleaseRequest", parse::RELEASE_FIELDS),
            ("CancelRequest", parse::CANCEL_FIELDS),
            ("StartRequest", parse::START_FIELDS),
            ("CronRequest", parse::CRON_FIELDS),
            ("RerunRequest", parse::RERUN_FIELDS),
            ("EventRequest", parse::EVENT_FIELDS),
        ] {
            let mut read: Vec<_> = read.to_vec();
            read.sort_unstable();
            assert_eq!(properties(&document, schema), read, "{schema}");
        }
    }

    #[test]
    fn every_bound_of_the_server_has_its_place_in_the_document() {
        let lost = bounds::apply(&mut routes::documented().into_openapi());
        assert!(lost.is_empty(), "{lost:?}");
    }

    /// A field's schema, without the `null` that an optional one may be.
    fn form(schema: &Value) -> &Value {
        let forms = schema["oneOf"].as_array().into_iter().flatten();
        let real: Vec<_> = forms.filter(|form| form["type"] != "null").collect();
        if let [one] = real.as_slice() { one } else { schema }
    }

    #[test]
    fn what_is_in_a_path_or_a_request_has_a_bound_unless_it_is_known_to_have_none() {
        const FREE: [&str; 5] = [
            "FailError.message",
            "CronRequest.time_zone",
            "RetryObject.backoff",
            "SteepRetries.exponentialBackoff",
            "run_at",
        ];
        let document: Value = serde_json::from_str(TEXT).unwrap();
        let is_free =
            |place: &str| place.ends_with("traceparent") || FREE.iter().any(|free| place.ends_with(free));
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            let is_asked =
                ["Request", "Entry", "Error", "Object", "Retries"].iter().any(|end| name.ends_with(end));
            for (field, schema) in schema["properties"].as_object().into_iter().flatten().filter(|_| is_asked)
            {
                let (form, place) = (form(schema), format!("{name}.{field}"));
                let is_a = |kind: &str| form["type"].to_string().contains(&format!("\"{kind}\""));
                let is_bounded = match () {
                    () if form.get("$ref").is_some() || form.get("enum").is_some() => true,
                    () if is_a("string") => form.get("minLength").is_some(),
                    () if is_a("integer") || is_a("number") => form.get("minimum").is_some(),
                    () => true,
                };
                assert!(is_bounded || is_free(&place), "{place}: {form}");
            }
        }
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    let schema = &parameter["schema"];
                    if parameter["in"] == "path" {
                        assert!(
                            schema["pattern"].is_string() && schema["maxLength"].is_u64(),
                            "{path}: {schema}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn names_and_numbers_are_taken_at_their_bounds_and_not_beyond() {
        let document: Value = serde_json::from_str(TEXT).unwrap();
        let bound = |schema: &str, field: &str, which: &str| {
            let schema = &document["components"]["schemas"][schema]["properties"][field];
            usize::try_from(schema[which].as_u64().unwrap()).unwrap()
        };
        let taken = |body: Value| {
            let text = body.to_string();
            let object =
                crate::body::object(text.as_bytes(), parse::SCHEDULE_FIELDS, crate::body::Empty::IsMissing);
            parse::schedule(&object.unwrap(), tickover_core::time::Timestamp::EPOCH).is_ok()
        };
        let with = |field: &str, value: Value| {
            let mut body = serde_json::json!({"queue": "q", "kind": "k"});
            body[field] = value;
            body
        };
        for field in ["queue", "kind", "id"] {
            let most = bound("ScheduleRequest", field, "maxLength");
            assert!(taken(with(field, "x".repeat(most).into())), "{field}");
            assert!(!taken(with(field, "x".repeat(most + 1).into())), "{field}");
        }
        for field in ["timeout_ms", "timeout_seconds", "delay_ms", "delay_seconds", "heartbeat_timeout_ms"] {
            let (least, most) =
                (bound("ScheduleRequest", field, "minimum"), bound("ScheduleRequest", field, "maximum"));
            assert!(taken(with(field, least.into())) && taken(with(field, most.into())), "{field}");
            assert!(!taken(with(field, (most + 1).into())), "{field}");
            assert_eq!(taken(with(field, 0.into())), least == 0, "{field}");
            // An integer in JSON Schema's sense.
            assert!(taken(with(field, 7.0.into())) && !taken(with(field, 7.5.into())), "{field}");
        }
    }

    #[test]
    fn the_words_in_the_document_are_those_that_the_server_reads() {
        use tickover_core::cron::plan::{Missed, Overlap};
        let document: Value = serde_json::from_str(TEXT).unwrap();
        for (schema, words) in [
            ("Overlap", Overlap::ALL.map(Overlap::as_str).to_vec()),
            ("Missed", Missed::ALL.map(Missed::as_str).to_vec()),
            ("StartPolicy", parse::START_POLICIES.map(|(word, _)| word).to_vec()),
            ("TimeoutScope", parse::TIMEOUT_SCOPES.map(|(word, _)| word).to_vec()),
            ("OnTimeout", parse::ON_TIMEOUTS.map(|(word, _)| word).to_vec()),
            ("Jitter", vec!["none", "full"]),
        ] {
            assert_eq!(
                document["components"]["schemas"][schema]["enum"],
                serde_json::json!(words),
                "{schema}"
            );
        }
    }

    #[test]
    fn every_reference_in_the_document_leads_somewhere() {
        let document: Value = serde_json::from_str(TEXT).unwrap();
        let mut open = vec![&document];
        while let Some(value) = open.pop() {
            if let Some(target) = value.get("$ref").and_then(Value::as_str) {
                assert!(document.pointer(&target[1..]).is_some(), "{target}");
            }
            match value {
                Value::Object(fields) => open.extend(fields.values()),
                Value::Array(entries) => open.extend(entries),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }

    #[test]
    fn a_result_never_admits_null() {
        let document: Value = serde_json::from_str(TEXT).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for (name, schema) in schemas.iter().filter(|(name, _)| !name.contains("Request")) {
            if ["View", "Answer", "Result", "Problem"].iter().any(|end| name.ends_with(end)) {
                assert!(!schema.to_string().contains("\"null\""), "{name}: {schema}");
            }
        }
    }
}

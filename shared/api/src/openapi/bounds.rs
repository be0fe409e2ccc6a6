//! The bounds in the document, taken from where the server takes them: a number that stands in the document has no
//! second home in the types of requests.

use tickover_core::cron::expression::EXPRESSION_MAX;
use tickover_core::duration::Millis;
use tickover_core::limits::{self, LEASE_RANGE, Limits, SPAN_MAX, WAIT_MAX};
use tickover_core::retry;
use utoipa::Number;
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems};
use utoipa::openapi::{Array, Object, ObjectBuilder, OpenApi, PathItem, RefOr, Schema, Type};

use crate::parse::{LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX, LIMIT_MAX, TIMEOUT_MIN};

/// The characters of names.
const NAME: &str = "^[A-Za-z0-9._:-]+$";
/// Those of steps' names, which may have an index.
const STEP_NAME: &str = r"^[A-Za-z0-9._:\[\]-]+$";

/// What a value is held to. Lengths are in characters, and at least 1.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Name(usize),
    Step(usize),
    /// The server counts bytes: as many characters at most.
    Text(usize),
    /// Not empty.
    Some,
    /// A whole number.
    Whole(usize, usize),
    /// At most so many entries.
    Entries(usize),
    Labels,
}

/// Durations: the schema, and the range of those that are given as whole milliseconds.
const SPANS: [(&str, Millis, Millis); 6] = [
    ("Duration", Millis::ZERO, SPAN_MAX),
    ("Timeout", Millis::new(1), SPAN_MAX),
    ("RunTimeout", TIMEOUT_MIN, SPAN_MAX),
    ("Interval", Millis::from_secs(1), SPAN_MAX),
    ("Lease", LEASE_RANGE.0, LEASE_RANGE.1),
    ("Wait", Millis::ZERO, WAIT_MAX),
];

/// Durations whose fields say their unit: the schema, the name without the unit, and the least.
const NAMED_SPANS: [(&str, &str, Millis); 11] = [
    ("ScheduleRequest", "delay", Millis::ZERO),
    ("ScheduleRequest", "timeout", Millis::new(1)),
    ("ScheduleRequest", "schedule_to_start_timeout", Millis::new(1)),
    ("ScheduleRequest", "start_to_close_timeout", Millis::new(1)),
    ("ScheduleRequest", "heartbeat_timeout", Millis::new(1)),
    ("StartRequest", "execution_timeout", TIMEOUT_MIN),
    ("StartRequest", "run_timeout", TIMEOUT_MIN),
    ("StartRequest", "on_failure_timeout", TIMEOUT_MIN),
    ("StartRequest", "delay", Millis::ZERO),
    ("CronRequest", "every", Millis::from_secs(1)),
    ("CronRequest", "jitter", Millis::ZERO),
];

/// All other fields of requests that have a bound. The ids in a cron's requests are templates, which may
/// be longer than ids; those are in its description.
const FIELDS: [(&str, &str, Bound); 24] = [
    ("ScheduleRequest", "queue", Bound::Name(limits::QUEUE_NAME_MAX)),
    ("ScheduleRequest", "kind", Bound::Name(limits::KIND_MAX)),
    ("ScheduleRequest", "id", Bound::Name(limits::ID_MAX)),
    ("ScheduleRequest", "idempotency_key", Bound::Text(limits::IDEMPOTENCY_KEY_MAX)),
    ("ScheduleRequest", "labels", Bound::Labels),
    ("StartRequest", "workflow", Bound::Name(limits::WORKFLOW_MAX)),
    ("StartRequest", "id", Bound::Name(limits::EXECUTION_ID_MAX)),
    ("StartRequest", "queue", Bound::Name(limits::QUEUE_NAME_MAX)),
    ("StartRequest", "labels", Bound::Labels),
    ("EventRequest", "event_id", Bound::Name(limits::EVENT_ID_MAX)),
    ("RerunRequest", "steps", Bound::Step(limits::STEP_NAME_MAX)),
    ("CronRequest", "id", Bound::Name(limits::EXECUTION_ID_MAX)),
    ("CronRequest", "cron", Bound::Text(EXPRESSION_MAX)),
    ("CronRequest", "max_runs", Bound::Whole(1, 0xffff_ffff)),
    ("ClaimRequest", "worker", Bound::Name(limits::WORKER_MAX)),
    ("ClaimRequest", "max", Bound::Whole(1, limits::CLAIM_MAX)),
    ("CompleteRequest", "lease", Bound::Some),
    ("FailRequest", "lease", Bound::Some),
    ("HeartbeatRequest", "lease", Bound::Some),
    ("ReleaseRequest", "lease", Bound::Some),
    ("CompleteBatchEntry", "id", Bound::Name(limits::ID_MAX)),
    ("CompleteBatchEntry", "lease", Bound::Some),
    ("FailError", "code", Bound::Text(limits::ERROR_CODE_MAX)),
    ("RetryObject", "non_retryable", Bound::Entries(retry::MAX_CODES)),
];

/// What is named in paths and queries: where the path begins, the parameter, and its bound. The first that fits holds.
const PARAMETERS: [(&str, &str, Bound); 11] = [
    ("/v1/tasks", "id", Bound::Name(limits::ID_MAX)),
    ("/v1/queues", "queue", Bound::Name(limits::QUEUE_NAME_MAX)),
    ("/v1/tasks", "queue", Bound::Name(limits::QUEUE_NAME_MAX)),
    ("/v1/executions", "id", Bound::Name(limits::EXECUTION_ID_MAX)),
    ("/v1/executions/{id}/events", "name", Bound::Name(limits::EVENT_NAME_MAX)),
    ("/v1/executions/{id}/steps", "name", Bound::Step(limits::STEP_NAME_MAX)),
    ("/v1/executions", "workflow", Bound::Name(limits::WORKFLOW_MAX)),
    ("/v1/crons", "id", Bound::Name(limits::EXECUTION_ID_MAX)),
    ("/v1", "limit", Bound::Whole(1, LIMIT_MAX)),
    ("/v1", "status", Bound::Some),
    ("/v1", "cursor", Bound::Some),
];

/// Puts the bounds into a document. Answers with those that found no place.
pub(super) fn apply(document: &mut OpenApi) -> Vec<String> {
    let mut lost = Vec::new();
    let mut held = |place: String, schema: Option<&mut RefOr<Schema>>, bound: Bound| {
        if !schema.is_some_and(|schema| hold(schema, bound)) {
            lost.push(place);
        }
    };
    for (schema, least, most) in SPANS {
        held(schema.to_owned(), variant(document, schema, 1), Bound::Whole(count(least), count(most)));
    }
    for (schema, field, least) in NAMED_SPANS {
        for (unit, of_unit) in [("ms", 1), ("seconds", 1_000)] {
            let name = format!("{field}_{unit}");
            let bound = Bound::Whole(count(least).div_ceil(of_unit), count(SPAN_MAX) / of_unit);
            held(format!("{schema}.{name}"), property(document, schema, &name), bound);
        }
    }
    for (schema, field, bound) in FIELDS {
        held(format!("{schema}.{field}"), property(document, schema, field), bound);
    }
    let batch = Bound::Entries(Limits::default().batch);
    for schema in ["ScheduleBatchRequest", "CompleteBatchRequest"] {
        held(format!("{schema}.tasks"), property(document, schema, "tasks"), batch);
    }
    held("Delay".to_owned(), variant(document, "Delay", 1), Bound::Entries(retry::MAX_LISTED_DELAYS));
    for (path, item) in &mut document.paths.paths {
        for parameter in parameters(item) {
            let known =
                PARAMETERS.iter().find(|(from, name, _)| path.starts_with(from) && *name == parameter.name);
            if let Some((_, name, bound)) = known {
                held(format!("{path} {name}"), parameter.schema.as_mut(), *bound);
            }
        }
    }
    lost
}

fn count(span: Millis) -> usize {
    usize::try_from(span.as_u64()).unwrap_or(usize::MAX)
}

fn schema<'a>(document: &'a mut OpenApi, name: &str) -> Option<&'a mut Schema> {
    match document.components.as_mut()?.schemas.get_mut(name)? {
        RefOr::T(schema) => Some(schema),
        RefOr::Ref(_) => None,
    }
}

/// A field of an object.
fn property<'a>(document: &'a mut OpenApi, name: &str, field: &str) -> Option<&'a mut RefOr<Schema>> {
    match schema(document, name)? {
        Schema::Object(object) => object.properties.get_mut(field),
        _ => None,
    }
}

/// One of the forms that a value may have.
fn variant<'a>(document: &'a mut OpenApi, name: &str, index: usize) -> Option<&'a mut RefOr<Schema>> {
    match schema(document, name)? {
        Schema::OneOf(forms) => forms.items.get_mut(index),
        _ => None,
    }
}

fn parameters(item: &mut PathItem) -> impl Iterator<Item = &mut Parameter> {
    let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
    operations.into_iter().filter_map(parameters_of).flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    })
}

fn parameters_of(operation: &mut Option<Operation>) -> Option<&mut Vec<RefOr<Parameter>>> {
    operation.as_mut()?.parameters.as_mut()
}

/// Puts a bound into a schema, if it is one for such values.
fn hold(schema: &mut RefOr<Schema>, bound: Bound) -> bool {
    match (schema, bound) {
        (RefOr::T(Schema::Array(list)), Bound::Entries(most)) => list.max_items = Some(most),
        (RefOr::T(Schema::Array(list)), Bound::Step(_)) => return hold_entries(list, bound),
        (RefOr::T(Schema::Object(value)), bound) => return hold_value(value, bound),
        _ => return false,
    }
    true
}

fn hold_entries(list: &mut Array, bound: Bound) -> bool {
    match &mut list.items {
        ArrayItems::RefOrSchema(entry) => hold(entry, bound),
        ArrayItems::False => false,
    }
}

fn hold_value(value: &mut Object, bound: Bound) -> bool {
    match bound {
        Bound::Name(most) => named(value, most, NAME),
        Bound::Step(most) => named(value, most, STEP_NAME),
        Bound::Text(most) => (value.min_length, value.max_length) = (Some(1), Some(most)),
        Bound::Some => value.min_length = Some(1),
        Bound::Whole(least, most) => {
            (value.minimum, value.maximum) = (Some(Number::UInt(least)), Some(Number::UInt(most)));
        }
        Bound::Labels => {
            value.max_properties = Some(LABELS_MAX);
            let names = ObjectBuilder::new().schema_type(Type::String);
            let names = names.min_length(Some(1)).max_length(Some(LABEL_NAME_MAX));
            value.property_names = Some(Box::new(names.into()));
            let Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(text)))) =
                value.additional_properties.as_deref_mut()
            else {
                return false;
            };
            text.max_length = Some(LABEL_VALUE_MAX);
        }
        Bound::Entries(_) => return false,
    }
    true
}

fn named(value: &mut Object, most: usize, pattern: &str) {
    (value.min_length, value.max_length) = (Some(1), Some(most));
    value.pattern = Some(pattern.to_owned());
}

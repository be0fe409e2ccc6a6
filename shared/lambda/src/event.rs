//! The kind of an event, recognised by the fields that each AWS service adds.

use aws_lambda_events::sqs::SqsEvent;
use serde::Deserialize;
use serde_json::value::RawValue;
use tickover_core::limits::JSON_DEPTH_MAX;
use tickover_core::payload;
use tickover_core::time::Timestamp;

use crate::answer::Failure;

#[derive(Clone, Debug)]
pub enum Event {
    /// A body as over HTTP, sent by a direct invocation.
    Invoke(Box<RawValue>),
    /// A batch of messages from an SQS queue.
    Messages(SqsEvent),
    /// A schedule's event for this instant: from `EventBridge` Scheduler, with or without our own input, or from a
    /// scheduled rule.
    Tick(Timestamp),
    /// A schedule's event without a valid instant: the field that should contain it, and what was found there.
    BadTick(&'static str, String),
    /// Any other event of AWS, described in words.
    Unsupported(String),
}

/// Fields by which events of AWS differ from direct invocations.
#[derive(Deserialize)]
struct Marks<'a> {
    #[serde(borrow, rename = "Records")]
    records: Option<&'a RawValue>,
    #[serde(borrow, rename = "detail-type")]
    detail_type: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestContext")]
    request_context: Option<&'a RawValue>,
    #[serde(borrow)]
    scheduled_at: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Record {
    /// SNS writes it with a capital letter.
    #[serde(rename = "eventSource", alias = "EventSource", default)]
    source: String,
}

#[derive(Deserialize)]
struct BusEvent {
    source: String,
    #[serde(rename = "detail-type")]
    detail_type: String,
    time: Option<Box<RawValue>>,
}

/// Levels of JSON that an event may have: those of a body and some around it. Deeper events aren't parsed here.
const DEPTH_MAX: usize = 2 * JSON_DEPTH_MAX;

/// How many characters of an invalid instant are shown.
const SHOWN_CHARS: usize = 40;

impl Event {
    /// Recognises an event. An event without a service's fields is a direct invocation.
    pub fn read(raw: Box<RawValue>) -> Self {
        // The body's parser rejects JSON that nests too deep. Serde would accept an array for a struct with as many
        // fields.
        let is_too_deep = payload::depth(raw.get().as_bytes()) > DEPTH_MAX;
        if is_too_deep || !raw.get().trim_ascii_start().starts_with('{') {
            return Self::Invoke(raw);
        }
        let Ok(marks) = serde_json::from_str::<Marks<'_>>(raw.get()) else { return Self::Invoke(raw) };
        if let Some(records) = marks.records {
            return Self::from_records(records, &raw);
        }
        if marks.detail_type.is_some() {
            return Self::from_bus(&raw);
        }
        if marks.request_context.is_some() {
            return Self::Unsupported("an HTTP request, which the gateway takes".to_owned());
        }
        match marks.scheduled_at {
            Some(instant) => Self::tick("scheduled_at", Some(instant)),
            None => Self::Invoke(raw),
        }
    }

    /// The error for an event that a function doesn't handle, with what the function expects.
    pub fn unexpected(&self, expected: &str) -> Failure {
        let found = match self {
            Self::Invoke(_) => "a direct invocation with another body",
            Self::Messages(_) => "a batch of SQS messages",
            Self::Tick(_) | Self::BadTick(..) => "a schedule's event",
            Self::Unsupported(sort) => sort,
        };
        Failure { code: "unexpected_event", message: format!("expected {expected}; found {found}") }
    }

    fn from_records(records: &RawValue, event: &RawValue) -> Self {
        let sources: Vec<Record> = match serde_json::from_str(records.get()) {
            Ok(sources) => sources,
            Err(_) => return Self::Unsupported("`Records` that aren't a list of objects".to_owned()),
        };
        match sources.iter().find(|record| record.source != "aws:sqs") {
            Some(other) => Self::Unsupported(format!("records from {:?}", other.source)),
            None => match serde_json::from_str(event.get()) {
                Ok(batch) => Self::Messages(batch),
                // The parser's message could quote the batch, so only its position is shown.
                Err(error) => Self::Unsupported(format!(
                    "a malformed batch of SQS messages (line {} column {})",
                    error.line(),
                    error.column(),
                )),
            },
        }
    }

    fn from_bus(event: &RawValue) -> Self {
        let Ok(event) = serde_json::from_str::<BusEvent>(event.get()) else {
            return Self::Unsupported("a malformed EventBridge event".to_owned());
        };
        let is_ours = ["aws.events", "aws.scheduler"].contains(&event.source.as_str());
        if !is_ours || event.detail_type != "Scheduled Event" {
            let BusEvent { source, detail_type, .. } = event;
            return Self::Unsupported(format!("an EventBridge event {detail_type:?} of {source:?}"));
        }
        Self::tick("time", event.time.as_deref())
    }

    /// A schedule's event, with the name of the field that contains its instant.
    fn tick(field: &'static str, value: Option<&RawValue>) -> Self {
        let Some(value) = value else { return Self::BadTick(field, "nothing".to_owned()) };
        let text: Option<String> = serde_json::from_str(value.get()).ok();
        match text.as_deref().and_then(Timestamp::parse_rfc3339) {
            Some(instant) => Self::Tick(instant),
            None => Self::BadTick(field, value.get().chars().take(SHOWN_CHARS).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Event {
        Event::read(RawValue::from_string(text.to_owned()).unwrap())
    }

    fn found(text: &str) -> String {
        read(text).unexpected("a cat").message
    }

    #[test]
    fn an_event_without_marks_is_a_direct_invocation_and_unchanged() {
        for text in ["{}", r#"{ "queue":"emails" }"#, "[1, 2, 3, 4]", "null", "7", r#"{"Records":null}"#] {
            assert!(matches!(read(text), Event::Invoke(raw) if raw.get() == text), "{text}");
        }
    }

    #[test]
    fn what_nests_too_deep_is_left_to_the_limit_of_bodies() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(r#"{{"Records":{deep}}}"#);
        assert!(matches!(read(&text), Event::Invoke(raw) if raw.get() == text));
    }

    #[test]
    fn records_are_messages_only_if_they_come_from_sqs() {
        assert!(matches!(read(r#"{"Records":[{"eventSource":"aws:sqs","messageId":"1"}]}"#),
            Event::Messages(batch) if batch.records.len() == 1));
        assert_eq!(
            found(r#"{"Records":[{"EventSource":"aws:sns","Sns":{}}]}"#),
            r#"expected a cat; found records from "aws:sns""#
        );
        assert!(found(r#"{"Records":7}"#).ends_with("aren't a list of objects"));
        let malformed = found(r#"{"Records":[{"eventSource":"aws:sqs","body":{"secret":1}}]}"#);
        assert!(malformed.contains("malformed batch") && !malformed.contains("secret"), "{malformed}");
    }

    #[test]
    fn a_schedule_is_known_by_either_of_its_services() {
        let scheduler = r#"{"scheduled_at":"2026-01-31T12:00:00Z"}"#;
        let rule = r#"{"version":"0","id":"1","detail-type":"Scheduled Event","source":"aws.events","time":"2026-01-31T12:00:00Z","detail":{}}"#;
        let no_input = rule.replace("aws.events", "aws.scheduler").replace("{}", r#""{}""#);
        for text in [scheduler, rule, &no_input] {
            assert!(matches!(read(text), Event::Tick(at) if at.as_millis() == 1_769_860_800_000), "{text}");
        }
    }

    #[test]
    fn a_schedule_without_an_instant_says_what_it_has_instead() {
        let bus = |time: &str| {
            format!(r#"{{"detail-type":"Scheduled Event","source":"aws.events"{time},"detail":{{}}}}"#)
        };
        for (text, field, found) in [
            (
                r#"{"scheduled_at":"<aws.scheduler.scheduled-time>"}"#.to_owned(),
                "scheduled_at",
                r#""<aws.scheduler.scheduled-time>""#,
            ),
            (r#"{"scheduled_at":1769860800000}"#.to_owned(), "scheduled_at", "1769860800000"),
            (bus(""), "time", "nothing"),
            (bus(r#","time":["2026-01-31"]"#), "time", r#"["2026-01-31"]"#),
            (bus(&format!(r#","time":"{}""#, "é".repeat(99))), "time", &format!("\"{}", "é".repeat(39))),
        ] {
            let event = read(&text);
            assert!(
                matches!(&event, Event::BadTick(at, what) if *at == field && what == found),
                "{text}: {event:?}"
            );
        }
    }

    #[test]
    fn other_events_say_what_they_are() {
        assert!(found(r#"{"requestContext":{"http":{}}}"#).contains("the gateway takes"));
        let ec2 = r#"{"detail-type":"EC2 Instance State-change Notification","source":"aws.ec2","time":"x"}"#;
        assert!(found(ec2).contains(r#""EC2 Instance State-change Notification" of "aws.ec2""#));
    }
}

//! The envelope of requests without a path that names the call:
//! `{"v":1,"type":"task"|"complete"|"fail"|…,"body":{… as over HTTP …}}`.

use serde_json::Number;
use serde_json::value::RawValue;
use tickover_api::calls::{self, Call};
use tickover_api::{Answer, Problem};
use tickover_core::error::Reject;
use tickover_core::trace::TraceContext;
use tickover_service::Service;

use crate::fields::Fields;

/// The envelope's version. If it is another one, the rest of the envelope isn't read.
const VERSION: u64 = 1;
/// The fields that make an object an envelope. No body has any of them.
const ENVELOPE: [&str; 3] = ["v", "type", "body"];
/// How many characters of an unknown type are shown.
const SHOWN_CHARS: usize = 40;

/// The call that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Schedule a task: the body of `POST /v1/tasks`.
    Task,
    /// Start an execution: the body of `POST /v1/executions`.
    Execution,
    /// Send an event: the body of `POST /v1/executions/{id}/events/{name}`, with the `id` and the `name` in it.
    Event,
    /// Report a result: the body of `POST /v1/tasks/{id}/complete`, with the `id` in it.
    Complete,
    /// Report an error: the body of `POST /v1/tasks/{id}/fail`, with the `id` in it.
    Fail,
    /// Send a heartbeat: the body of `POST /v1/tasks/{id}/heartbeat`, with the `id` in it.
    Heartbeat,
    /// Release a task: the body of `POST /v1/tasks/{id}/release`, with the `id` in it.
    Release,
}

impl Kind {
    /// The envelope's `type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Execution => "execution",
            Self::Event => "event",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Heartbeat => "heartbeat",
            Self::Release => "release",
        }
    }

    /// Whether it concerns an attempt or an execution that may have ended already.
    pub const fn may_be_late(self) -> bool {
        match self {
            Self::Task | Self::Execution => false,
            Self::Event | Self::Complete | Self::Fail | Self::Heartbeat | Self::Release => true,
        }
    }
}

/// The requests that are accepted at one place.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// The types of envelopes that are accepted here.
    pub kinds: &'static [Kind],
    /// The type of a body without an envelope. If that is allowed, an envelope needs no version.
    pub without_envelope: Option<Kind>,
}

/// A request without its envelope.
#[derive(Clone, Debug)]
pub struct Request {
    pub kind: Kind,
    /// The body as raw text, not parsed yet.
    pub body: Box<RawValue>,
    /// The trace that the transport named.
    pub trace: Option<TraceContext>,
}

impl Accepted {
    /// Removes the envelope.
    pub fn read(&self, text: &str) -> Result<Request, Reject> {
        let mut fields = Fields::read("body", text)?;
        if let Some(kind) = self.without_envelope
            && !ENVELOPE.iter().any(|name| fields.has(name))
        {
            return Ok(Request { kind, body: fields.to_json()?, trace: None });
        }
        self.check_version(fields.take("v")?.as_deref())?;
        let kind = self.kind(fields.take_text("type")?.as_deref())?;
        let body = fields.take("body")?;
        if let Some(unknown) = fields.first() {
            return Err(Reject::field(unknown, "unknown field: an envelope has v, type and body"));
        }
        match body {
            Some(body) if body.get().starts_with('{') => Ok(Request { kind, body, trace: None }),
            Some(_) | None => Err(Reject::field("body", "expected a JSON object, as over HTTP")),
        }
    }

    fn check_version(&self, found: Option<&RawValue>) -> Result<(), Reject> {
        let Some(found) = found else {
            let envelope = r#"{"v":1,"type":…,"body":{…}}"#;
            let missing =
                || Reject::instead_of("v", "expected 1", format_args!("nothing: a request is {envelope}"));
            return self.without_envelope.map(drop).ok_or_else(missing);
        };
        match serde_json::from_str::<Number>(found.get()) {
            Ok(version) if version.as_u64() == Some(VERSION) => Ok(()),
            Ok(version) => Err(Reject::instead_of("v", "expected 1", version)),
            Err(_) => Err(Reject::instead_of("v", "expected 1", "no number")),
        }
    }

    fn kind(&self, found: Option<&str>) -> Result<Kind, Reject> {
        let names: Vec<_> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let expected = format!("expected {}", names.join(", "));
        let Some(found) = found else {
            return Err(Reject::instead_of("type", expected, "nothing"));
        };
        if let Some(kind) = self.kinds.iter().find(|kind| kind.as_str() == found) {
            return Ok(*kind);
        }
        let shown: String = found.chars().take(SHOWN_CHARS).collect();
        Err(Reject::instead_of("type", expected, format_args!("{shown:?}")))
    }
}

impl Request {
    /// Makes the call that is requested.
    pub async fn run(&self, service: &Service) -> Result<Answer, Problem> {
        let whole = Call { body: self.body.get().as_bytes(), trace: self.trace };
        match self.kind {
            Kind::Task => calls::schedule(service, whole).await,
            Kind::Execution => calls::executions::start(service, whole).await,
            Kind::Event => calls::executions::event(service, whole).await,
            Kind::Complete => {
                let (id, body) = self.of_task()?;
                calls::complete(service, &id, body.get().as_bytes()).await
            }
            Kind::Fail => {
                let (id, body) = self.of_task()?;
                calls::fail(service, &id, body.get().as_bytes()).await
            }
            Kind::Heartbeat => {
                let (id, body) = self.of_task()?;
                calls::heartbeat(service, &id, body.get().as_bytes()).await
            }
            Kind::Release => {
                let (id, body) = self.of_task()?;
                calls::release(service, &id, body.get().as_bytes()).await
            }
        }
    }

    /// The task's id, and the body without it.
    fn of_task(&self) -> Result<(String, Box<RawValue>), Reject> {
        let mut fields = Fields::read("body", self.body.get())?;
        let id = fields
            .take_text("id")?
            .ok_or_else(|| Reject::field("id", "expected a task's id, found nothing"))?;
        Ok((id, fields.to_json()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Accepted = Accepted { kinds: &[Kind::Task, Kind::Fail], without_envelope: None };
    const LENIENT: Accepted = Accepted { kinds: &[Kind::Complete], without_envelope: Some(Kind::Complete) };

    fn refused(accepted: &Accepted, text: &str) -> String {
        accepted.read(text).unwrap_err().to_string()
    }

    #[test]
    fn an_envelope_is_taken_off_and_the_body_is_left_alone() {
        let request = STRICT.read(r#"{"v":1,"type":"task","body":{"a": [1.0]}}"#).unwrap();
        assert_eq!((request.kind, request.body.get()), (Kind::Task, r#"{"a": [1.0]}"#));
    }

    #[test]
    fn a_bare_body_is_taken_only_where_it_may_come() {
        let request = LENIENT.read(r#"{"id":"t","lease":"l"}"#).unwrap();
        assert_eq!((request.kind, request.body.get()), (Kind::Complete, r#"{"id":"t","lease":"l"}"#));
        assert!(LENIENT.read(r#"{"type":"complete","body":{}}"#).is_ok());
        assert!(refused(&STRICT, r#"{"queue":"q"}"#).starts_with("v: expected 1, found nothing"));
        assert!(refused(&STRICT, r#"{"type":"task","body":{}}"#).starts_with("v: expected 1, found nothing"));
    }

    #[test]
    fn what_is_unknown_is_refused_with_what_was_expected() {
        for (text, expected) in [
            (r#"{"v":2,"type":"task","body":{},"new":1}"#, "v: expected 1, found 2"),
            (r#"{"v":"1","type":"task","body":{}}"#, "v: expected 1, found no number"),
            (r#"{"v":1,"type":"job","body":{}}"#, r#"type: expected task, fail, found "job""#),
            (r#"{"v":1,"body":{}}"#, "type: expected task, fail, found nothing"),
            (r#"{"v":1,"type":7,"body":{}}"#, "type: expected a string"),
            (r#"{"v":1,"type":"task"}"#, "body: expected a JSON object, as over HTTP"),
            (r#"{"v":1,"type":"task","body":"{}"}"#, "body: expected a JSON object, as over HTTP"),
            (
                r#"{"v":1,"type":"task","body":{},"id":"x"}"#,
                "id: unknown field: an envelope has v, type and body",
            ),
        ] {
            assert_eq!(refused(&STRICT, text), expected, "{text}");
        }
        assert!(
            refused(&STRICT, "{\"v\":1,").starts_with("body: expected one JSON object, found malformed JSON")
        );
    }
}

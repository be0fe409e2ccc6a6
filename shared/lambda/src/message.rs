//! One request in a message. No caller waits for an answer, and SQS may deliver the same message several times.

use aws_lambda_events::sqs::SqsMessage;
use sha2::{Digest as _, Sha256};
use tickover_api::Problem;
use tickover_core::error::Reject;
use tickover_core::trace::TraceContext;
use tickover_service::Service;

use crate::fields::Fields;
use crate::ingress::{Accepted, Kind, Request};
use crate::sqs::MESSAGE_ID;

/// The codes of final rejections of a report or an event that is too late.
const TOO_LATE: [&str; 3] = ["lease_lost", "deadline_exceeded", "already_terminal"];

/// Makes the call that a message requests. A report or an event that is too late is logged and counts as done: a retry
/// would not help, and an operator could do nothing with it in the dead-letter queue.
pub async fn take(service: &Service, accepted: &Accepted, message: SqsMessage) -> Result<(), Problem> {
    let trace = trace_of(&message);
    let id = message.message_id.unwrap_or_default();
    let text = message.body.unwrap_or_default();
    let request = with_message_id(Request { trace, ..accepted.read(&text)? }, &id, &text)?;
    match request.run(service).await {
        Ok(_) => Ok(()),
        Err(problem) if request.kind.may_be_late() && TOO_LATE.contains(&problem.code()) => {
            let (kind, code) = (request.kind.as_str(), problem.code());
            tracing::warn!(
                { MESSAGE_ID } = id,
                kind,
                code,
                reason = problem.for_logs(),
                "late report dropped"
            );
            Ok(())
        }
        Err(problem) => Err(problem),
    }
}

/// The trace in a message's attributes: the sender's own in W3C's format, or AWS X-Ray's.
fn trace_of(message: &SqsMessage) -> Option<TraceContext> {
    let own = message.message_attributes.get("traceparent").and_then(|value| value.string_value.as_deref());
    let xray = || message.attributes.get("AWSTraceHeader").map(String::as_str);
    own.and_then(TraceContext::parse).or_else(|| xray().and_then(TraceContext::parse_xray))
}

/// Fields beside which a request gets no id: one that makes it repeatable, and one that makes one record of several
/// requests. A debounced request whose message comes again counts as one more of its burst.
const UNNAMED: [&str; 2] = ["idempotency_key", "debounce"];

/// SQS delivers a message at least once. So a request without an id (of a task, an execution or an event) gets one that
/// is derived from its message: the second delivery finds the record of the first. The text is part of the id because
/// some emulators repeat message ids.
fn with_message_id(request: Request, message_id: &str, text: &str) -> Result<Request, Reject> {
    let field = match request.kind {
        Kind::Task | Kind::Execution => "id",
        Kind::Event => "event_id",
        Kind::Complete | Kind::Fail | Kind::Heartbeat | Kind::Release => return Ok(request),
    };
    if message_id.is_empty() {
        return Ok(request);
    }
    let mut fields = Fields::read("body", request.body.get())?;
    if UNNAMED.iter().chain([&field]).any(|name| fields.has(name)) {
        return Ok(request);
    }
    // A null counts as absent, and the field must not occur twice.
    fields.take(field)?;
    fields.put_text(field, &name(message_id, text))?;
    Ok(Request { body: fields.to_json()?, ..request })
}

/// 128 bits in hexadecimal, the form of all ids that Tickover generates.
fn name(message_id: &str, text: &str) -> String {
    let digest = Sha256::new().chain_update(message_id).chain_update([0]).chain_update(text).finalize();
    let bits = digest.iter().take(16).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    format!("{bits:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const INLET: Accepted =
        Accepted { kinds: &[Kind::Complete, Kind::Event], without_envelope: Some(Kind::Task) };

    fn named(message_id: &str, text: &str) -> String {
        let request = with_message_id(INLET.read(text).unwrap(), message_id, text).unwrap();
        request.body.get().to_owned()
    }

    #[test]
    fn a_task_without_a_name_gets_the_same_one_each_time_its_message_comes() {
        let text = r#"{"queue":"q","id":null}"#;
        let first = named("m-1", text);
        assert!(first.starts_with(r#"{"queue":"q","id":""#) && first.len() == 32 + 21, "{first}");
        assert_eq!(named("m-1", text), first);
        assert_ne!(named("m-2", text), first);
        assert_ne!(named("m-1", r#"{"queue":"p","id":null}"#), first);
    }

    #[test]
    fn a_trace_is_taken_from_the_senders_attribute_or_from_x_rays() {
        let named = |attributes: serde_json::Value| {
            let message: SqsMessage = serde_json::from_value(attributes).unwrap();
            trace_of(&message).map(|trace| trace.traceparent())
        };
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let own = serde_json::json!({"traceparent": {"stringValue": trace, "dataType": "String"}});
        assert_eq!(named(serde_json::json!({"messageAttributes": own})).as_deref(), Some(trace));
        let xray = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1";
        let system = serde_json::json!({"AWSTraceHeader": xray});
        assert_eq!(named(serde_json::json!({"attributes": system})).as_deref(), Some(trace));
        assert_eq!(named(serde_json::json!({"attributes": {"AWSTraceHeader": "Root=1"}})), None);
    }

    #[test]
    fn an_event_without_an_id_of_its_own_gets_one_beside_its_executions() {
        let text = r#"{"type":"event","body":{"id":"order-7","name":"shipped"}}"#;
        let first = named("m-1", text);
        assert_eq!(named("m-1", text), first);
        let id = name("m-1", text);
        assert_eq!(first, format!(r#"{{"id":"order-7","name":"shipped","event_id":"{id}"}}"#));
    }

    #[test]
    fn a_name_that_was_given_stays_and_reports_get_none() {
        for text in [
            r#"{"id":"mine"}"#,
            r#"{"idempotency_key":"mine"}"#,
            r#"{"debounce":{"key":"k","wait":"1s","at_most":"2s"}}"#,
            r#"{"type":"complete","body":{"lease":"l"}}"#,
        ] {
            assert!(!named("m-1", text).contains(&name("m-1", text)), "{text}");
        }
        assert_eq!(named("", r#"{"queue":"q"}"#), r#"{"queue":"q"}"#);
    }
}

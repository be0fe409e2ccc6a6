//! One request that came by message. Nobody waits for an answer, and the same message may come again.

use aws_lambda_events::sqs::SqsMessage;
use sha2::{Digest as _, Sha256};
use tickover_api::Problem;
use tickover_core::error::Reject;
use tickover_service::Service;

use crate::fields::Fields;
use crate::ingress::{Inlet, Kind, Request};
use crate::sqs::MESSAGE_ID;

/// Refusals of a report or an event that comes too late: nothing that happens from here on will make it welcome.
const TOO_LATE: [&str; 3] = ["lease_lost", "deadline_exceeded", "already_terminal"];

/// Carries out what a message asks for. A report or an event that comes too late is logged and done with: it isn't the
/// message's fault, and whoever sees it again, or finds it among the dead letters, could do nothing about it.
pub async fn take(service: &Service, inlet: &Inlet, message: SqsMessage) -> Result<(), Problem> {
    let id = message.message_id.unwrap_or_default();
    let text = message.body.unwrap_or_default();
    let request = named_after_its_message(inlet.read(&text)?, &id, &text)?;
    match request.carry_out(service).await {
        Ok(_) => Ok(()),
        Err(problem) if request.kind.may_be_late() && TOO_LATE.contains(&problem.code()) => {
            let (kind, code) = (request.kind.as_str(), problem.code());
            tracing::warn!({ MESSAGE_ID } = id, kind, code, reason = problem.detail, "late report dropped");
            Ok(())
        }
        Err(problem) => Err(problem),
    }
}

/// SQS delivers a message at least once, so what has no name of its own (a task, an execution, an event) gets one
/// from its message: the second delivery finds it. The text is part of the name because some emulators number their messages anew.
fn named_after_its_message(request: Request, message_id: &str, text: &str) -> Result<Request, Reject> {
    let field = match request.kind {
        Kind::Task | Kind::Execution => "id",
        Kind::Event => "event_id",
        Kind::Complete | Kind::Fail | Kind::Heartbeat | Kind::Release => return Ok(request),
    };
    if message_id.is_empty() {
        return Ok(request);
    }
    let mut fields = Fields::read("body", request.body.get())?;
    if fields.has(field) || fields.has("idempotency_key") {
        return Ok(request);
    }
    // A null stands for nothing, and the name must not be there twice.
    fields.take(field)?;
    fields.put_text(field, &name(message_id, text))?;
    Ok(Request { body: fields.to_json()?, ..request })
}

/// 128 bits in hexadecimal, as other tasks are named that nobody named.
fn name(message_id: &str, text: &str) -> String {
    let digest = Sha256::new().chain_update(message_id).chain_update([0]).chain_update(text).finalize();
    let bits = digest.iter().take(16).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    format!("{bits:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const INLET: Inlet = Inlet { kinds: &[Kind::Complete, Kind::Event], bare: Some(Kind::Task) };

    fn named(message_id: &str, text: &str) -> String {
        let request = named_after_its_message(INLET.read(text).unwrap(), message_id, text).unwrap();
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
            r#"{"type":"complete","body":{"lease":"l"}}"#,
        ] {
            assert!(!named("m-1", text).contains(&name("m-1", text)), "{text}");
        }
        assert_eq!(named("", r#"{"queue":"q"}"#), r#"{"queue":"q"}"#);
    }
}

//! Messages of the queue of timers.

use aws_lambda_events::sqs::SqsMessage;
use tickover_api::Problem;
use tickover_core::error::Reject;
use tickover_core::time::Timestamp;
use tickover_service::claim::Delivered;
use tickover_service::timers::FireError;
use tickover_service::{Service, ServiceError};

use crate::sqs::{MESSAGE_ID, receives};

/// Does what a timer is for, or continues the sweep that it names, until `stop_at` at the latest.
///
/// A message that can't be read fails: a newer build may have sent it. So it stays in the queue until that build is
/// back, or goes to the dead-letter queue. Its task loses nothing: the next tick finds it.
pub async fn take(service: &Service, message: SqsMessage, stop_at: Timestamp) -> Result<(), Problem> {
    let (body, receives) = (message.body.as_deref().unwrap_or_default(), receives(&message));
    let fired = service.fire(Delivered { body, receipt: None, receives }, stop_at).await.map_err(problem)?;
    tracing::debug!({ MESSAGE_ID } = message.message_id, ?fired, "timer");
    Ok(())
}

fn problem(error: FireError) -> Problem {
    match error {
        FireError::Malformed(_) | FireError::TooFarAhead { .. } => Reject::field("body", error).into(),
        FireError::NotSentOn => ServiceError::unavailable(error.to_string()).into(),
        FireError::Service(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use tickover_core::timer::Wake;

    use super::*;

    #[test]
    fn problems_of_timers_are_retryable_or_describe_the_message() {
        let malformed = FireError::from(Wake::parse(r#"{"v":2}"#).unwrap_err());
        let far = FireError::TooFarAhead { at: Timestamp::EPOCH };
        let throttled = FireError::from(ServiceError::Throttled);
        let corrupt = FireError::from(ServiceError::Corrupt { reason: "x".to_owned() });
        for (error, code) in [
            (malformed, "invalid_request"),
            (far, "invalid_request"),
            (FireError::NotSentOn, "unavailable"),
            (throttled, "throttled"),
            (corrupt, "corrupt_record"),
        ] {
            let (said, again) = (error.to_string(), error.is_retryable());
            let problem = problem(error);
            assert_eq!((problem.code(), problem.is_retryable()), (code, again), "{said}");
            assert!(again || code == "corrupt_record" || problem.detail().contains(&said), "{problem:?}");
        }
    }
}

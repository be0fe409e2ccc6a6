//! The audit line of an operator's call: who made which call, about which record, and what came of it. The line's own time
//! is when that was known.
//!
//! Each call of [`OPERATORS_ROUTES`](tickover_wire::OPERATORS_ROUTES) has one, whatever its transport and the level of
//! the logs, and no other call has.

#[cfg(feature = "http")]
pub(crate) mod http;

use tickover_core::by::{Caller, REASON_BYTES_MAX};
use tickover_core::id::FlowKey;
use tickover_service::Service;
use tickover_service::telemetry::{AUDIT, field};
use tickover_wire::Route;

use crate::answer::Answer;
use crate::problem::Problem;

#[cfg(feature = "http")]
pub use http::RouteKey;
#[cfg(feature = "http")]
pub(crate) use http::panicked;

/// Who makes a call, as its transport knows. Over HTTP it is an extension of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whose call it is.
    pub caller: Caller,
    /// The program that calls for them, as their token says.
    pub client: Option<Caller>,
}

/// Makes a call without a server, with its audit line if it is an operator's.
pub async fn direct(
    service: &Service,
    route: Route,
    (names, query): (&[String], &[(String, String)]),
    call: impl Future<Output = Result<Answer, Problem>>,
) -> Result<Answer, Problem> {
    if !route.is_operators() {
        return call.await;
    }
    let identity = service.caller().map(|caller| Identity { caller, client: None });
    let reason = query.iter().find(|(name, _)| name == "reason");
    noted(identity, route, names, reason.map(|(_, reason)| reason.as_str()), call).await
}

/// Makes an operator's call and writes its audit line.
async fn noted(
    identity: Option<Identity>,
    route: Route,
    names: &[String],
    reason: Option<&str>,
    call: impl Future<Output = Result<Answer, Problem>>,
) -> Result<Answer, Problem> {
    let answered = call.await;
    let (said, status, code) = match &answered {
        Ok(answer) => (answer.id.as_deref(), answer.status, None),
        Err(problem) => (None, problem.status(), Some(problem.code())),
    };
    let about = about(route.names().zip(names.iter().map(String::as_str)));
    line(identity.as_ref(), (route.key(), about.as_deref().or(said)), reason, status, code);
    answered
}

/// What a call is about, by the names in its path: of two, the owner's first.
pub(crate) fn about<'k, 'n>(names: impl IntoIterator<Item = (&'k str, &'n str)>) -> Option<String> {
    let shown = |(name, value): (&'k str, &'n str)| match FlowKey::from_path(value) {
        Ok(key) if name == "key" => key.as_str().to_owned(),
        Ok(_) | Err(_) => value.to_owned(),
    };
    // The token of a callback is a secret.
    let all: Vec<_> = names.into_iter().filter(|(name, _)| *name != "token").map(shown).collect();
    (!all.is_empty()).then(|| all.join("/"))
}

/// Writes the line. The outcome is `ok`, or the code of the problem.
fn line(
    identity: Option<&Identity>,
    (call, id): (&str, Option<&str>),
    reason: Option<&str>,
    status: u16,
    code: Option<&str>,
) {
    let reason = reason.map(|reason| &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)]);
    tracing::info!(
        target: AUDIT,
        caller = identity.map_or("unknown", |identity| identity.caller.as_str()),
        client = identity.and_then(|identity| identity.client.as_ref()).map(Caller::as_str),
        call,
        id,
        reason,
        status,
        { field::OUTCOME } = code.unwrap_or("ok"),
        "an operator's call"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_as_it_was_given() {
        let path = FlowKey::parse("a/b ä").unwrap().to_path();
        assert_eq!(about([("key", path.as_str()), ("holder", "@e")]).unwrap(), "a/b ä/@e");
        assert_eq!(about([]), None);
    }
}

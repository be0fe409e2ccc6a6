//! The audit line of an operator's call: who made which call, about which record, and what came of it. The line's own time
//! is when that was known.
//!
//! Each call of [`OPERATORS_ROUTES`] has one, whatever its transport and the level of the logs, and no other call has.

#[cfg(feature = "http")]
mod http;

use tickover_core::by::Caller;
use tickover_core::id::FlowKey;
use tickover_service::Service;
use tickover_service::telemetry::{AUDIT, field};

use crate::answer::Answer;
use crate::problem::Problem;
use crate::routes::OPERATORS_ROUTES;

#[cfg(feature = "http")]
pub use http::RouteKey;
#[cfg(feature = "http")]
pub(crate) use http::{Audited, Said, panicked};

/// Who makes a call, as its transport knows. Over HTTP it is an extension of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whose call it is.
    pub caller: Caller,
    /// The program that calls for them, as their token says.
    pub client: Option<Caller>,
}

/// Makes a call without a server, with its audit line if it is an operator's. The path is in its segments.
pub async fn direct(
    service: &Service,
    method: &str,
    path: &[&str],
    call: impl Future<Output = Result<Answer, Problem>> + Send,
) -> Result<Answer, Problem> {
    let route = OPERATORS_ROUTES.iter().find_map(|route| Some((route, names(route, method, path)?)));
    let Some((route, names)) = route else { return call.await };
    let answered = call.await;
    let identity = service.caller().map(|caller| Identity { caller, client: None });
    let (said, status, code) = match &answered {
        Ok(answer) => (answer.id.as_deref(), answer.status, None),
        Err(problem) => (None, problem.status(), Some(problem.code())),
    };
    line(identity.as_ref(), route, about(names).as_deref().or(said), status, code);
    answered
}

/// The names in a path and their values, if the route fits it: its method, a space, and its path with names in braces.
fn names<'n>(route: &'n str, method: &str, path: &[&'n str]) -> Option<Vec<(&'n str, &'n str)>> {
    let segments = route.strip_prefix(method)?.strip_prefix(" /")?.split('/');
    let mut names = vec![];
    let mut given = path.iter();
    for segment in segments {
        let value = given.next()?;
        match segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
            Some(name) => names.push((name, *value)),
            None if segment == *value => {}
            None => return None,
        }
    }
    given.next().is_none().then_some(names)
}

/// What a call is about, by the names in its path: of two, the owner's first.
pub(crate) fn about<'n>(names: impl IntoIterator<Item = (&'n str, &'n str)>) -> Option<String> {
    let shown = |(name, value): (&str, &str)| match FlowKey::from_path(value) {
        Ok(key) if name == "key" => key.as_str().to_owned(),
        Ok(_) | Err(_) => value.to_owned(),
    };
    // The token of a callback is a secret.
    let all: Vec<_> = names.into_iter().filter(|(name, _)| *name != "token").map(shown).collect();
    (!all.is_empty()).then(|| all.join("/"))
}

/// Writes the line. The outcome is `ok`, or the code of the problem.
fn line(identity: Option<&Identity>, call: &str, id: Option<&str>, status: u16, code: Option<&str>) {
    tracing::info!(
        target: AUDIT,
        caller = identity.map_or("unknown", |identity| identity.caller.as_str()),
        client = identity.and_then(|identity| identity.client.as_ref()).map(Caller::as_str),
        call,
        id,
        status,
        { field::OUTCOME } = code.unwrap_or("ok"),
        "an operator's call"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_an_operators_if_its_method_and_all_segments_are() {
        let route = "POST /v1/executions/{id}/steps/{name}/retry";
        let path = ["v1", "executions", "e", "steps", "label[3]", "retry"];
        assert_eq!(names(route, "POST", &path), Some(vec![("id", "e"), ("name", "label[3]")]));
        assert_eq!(names("POST /v1/operations", "POST", &["v1", "operations"]), Some(vec![]));
        let longer = [&path[..], &["more"]].concat();
        let other = ["v1", "executions", "e", "x", "label[3]", "retry"];
        for (method, path) in
            [("PUT", &path[..]), ("POST", &path[..5]), ("POST", &longer[..]), ("POST", &other[..])]
        {
            assert_eq!(names(route, method, path), None, "{method} {path:?}");
        }
    }

    #[test]
    fn a_key_is_shown_as_it_was_given() {
        let path = FlowKey::parse("a/b ä").unwrap().to_path();
        assert_eq!(about([("key", path.as_str()), ("holder", "@e")]).unwrap(), "a/b ä/@e");
        assert_eq!(about([]), None);
    }
}

//! The calls of workers that run workflows in a process of their own.

mod work;
mod write;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::error::Reject;
use tickover_core::execution::journal::Entry;
use tickover_core::failure::Failure;
use tickover_core::id::{BlobId, StepName};
use tickover_core::payload::Json;
use tickover_service::Service;
use tickover_service::executions::{NamedEnd, StartedWork, ToStart};
use tickover_service::lease::LeaseToken;
use tickover_wire::Verbatim;
use tickover_wire::answer::{
    CallbackAnswer, OutcomeView, StartedView, TurnAnswer, TurnCancelAnswer, TurnPayloadAnswer,
    TurnStartAnswer,
};
use tickover_wire::request::{
    AwaitedExecution, TurnCallbackRequest, TurnCancelRequest, TurnPayloadRequest, TurnReadRequest,
    TurnStartRequest,
};

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name};

pub use work::claim;
pub use write::write;

/// How many bytes of journals and large payloads an answer has at most, beside records and inputs.
const BROUGHT_BYTES: usize = 1024 * 1024;

/// Reads what a worker asks about its turn.
pub async fn read(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let TurnReadRequest { lease, from, steps, children, payloads } = body::read(body)?;
    let token = token(&lease)?;
    let (execution, journal) = match from {
        Some(from) => {
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let (execution, journal) = service.journal_elsewhere(&id, &token, from).await?;
            (execution, Some(fitting(&journal, &mut { BROUGHT_BYTES })?))
        }
        None => (service.turn_elsewhere(&id, &token).await?, None),
    };
    let steps = steps.unwrap_or_default();
    let awaited = children.unwrap_or_default().into_iter();
    let awaited = awaited.map(|AwaitedExecution { name, execution }| (name, execution)).collect();
    let outcomes = outcomes(service.outcomes(&execution, &steps, awaited).await?)?;
    let payloads = match payloads {
        Some(ids) => texts(service.payloads_elsewhere(&id, &token, &blobs(ids)?).await?),
        None => BTreeMap::new(),
    };
    Answer::ok(&TurnAnswer { execution: stored(&execution)?, journal, outcomes, payloads })
}

/// Starts remote steps and children of a turn.
pub async fn start(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let TurnStartRequest { lease, steps, again, with_input, children } = body::read(body)?;
    let work = ToStart {
        steps: all_parsed("steps", steps.unwrap_or_default())?,
        again: again.unwrap_or_default(),
        with_input: with_input.unwrap_or_default(),
        children: all_parsed("children", children.unwrap_or_default())?,
    };
    let StartedWork { steps, children, trouble } =
        service.start_elsewhere(&id, &token(&lease)?, work).await?;
    let each = |(name, started): (StepName, Result<(), Failure>)| StartedView {
        name,
        refused: started.err().map(|failure| refusal(&failure)),
    };
    Answer::ok(&TurnStartAnswer {
        steps: steps.into_iter().map(each).collect(),
        children: children.into_iter().map(each).collect(),
        incomplete: trouble.map(|error| Problem::from(error).answer().clone()),
    })
}

/// Cancels remote steps that a turn no longer waits for.
pub async fn cancel(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let TurnCancelRequest { lease, steps } = body::read(body)?;
    let execution = service.turn_elsewhere(&id, &token(&lease)?).await?;
    service.cancel_remote(&execution, &steps).await?;
    Answer::ok(&TurnCancelAnswer {})
}

/// Stores a large payload of a turn.
pub async fn store(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let TurnPayloadRequest { lease, payload: Verbatim(json) } = body::read(body)?;
    let payload = service.store_elsewhere(&id, &token(&lease)?, json).await?;
    Answer::ok(&TurnPayloadAnswer { payload: stored(&payload)? })
}

/// Makes the token with which a wait of a turn ends.
pub async fn callback(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let TurnCallbackRequest { lease, event, expires_at } = body::read(body)?;
    let token = token(&lease)?;
    let made = service.callback_elsewhere(&id, &token, event, expires_at.into()).await?;
    let path = format!("/v1/callbacks/{}", made.token);
    Answer::ok(&CallbackAnswer { path, url: made.url, token: made.token, expires_at: made.expires_at.into() })
}

/// A text that no claim ever returned is a lost lease.
fn token(lease: &tickover_wire::LeaseToken) -> Result<LeaseToken, Reject> {
    LeaseToken::decode(&lease.0).ok_or(Reject::TurnLost)
}

/// A refusal that became a failure of the workflow's code.
fn refusal(failure: &Failure) -> tickover_wire::answer::Problem {
    tickover_wire::answer::Problem {
        code: failure.code.clone().into(),
        detail: failure.message.clone(),
        status: 409,
        ..Default::default()
    }
}

fn blobs(ids: Vec<String>) -> Result<Vec<BlobId>, Reject> {
    let ids = ids.into_iter().map(BlobId::try_from);
    ids.collect::<Result<_, _>>().map_err(|problem| Reject::field("payloads", problem))
}

fn texts(payloads: BTreeMap<BlobId, Json>) -> BTreeMap<String, Verbatim> {
    payloads.into_iter().map(|(id, json)| (id.to_string(), Verbatim(json))).collect()
}

fn outcomes(outcomes: Vec<NamedEnd>) -> Result<Vec<OutcomeView>, Problem> {
    outcomes.into_iter().map(|(name, end)| Ok(OutcomeView { name, end: stored(&end)? })).collect()
}

/// The first of these entries, as many as fit into what is left of an answer: at least one.
fn fitting(entries: &[Entry], left: &mut usize) -> Result<Vec<Verbatim>, Problem> {
    let mut fitting = Vec::new();
    for entry in entries {
        let text = stored(entry)?;
        let fits = left.checked_sub(text.0.len());
        if fits.is_none() && !fitting.is_empty() {
            break;
        }
        *left = fits.unwrap_or_default();
        fitting.push(text);
    }
    Ok(fitting)
}

/// Something as it is stored.
pub(super) fn stored<T: Serialize>(part: &T) -> Result<Verbatim, Problem> {
    let text = serde_json::to_string(part).ok().and_then(Json::parse);
    text.map(Verbatim).ok_or_else(|| Problem::corrupt("a stored record can't be written as JSON"))
}

/// The same, read. The error has no text of the caller's.
fn parsed<T: DeserializeOwned>(field: &str, Verbatim(json): &Verbatim) -> Result<T, Reject> {
    serde_json::from_str(json.as_str()).map_err(|error| {
        Reject::instead_of(field, "expected the form that is stored", format_args!("something else: {error}"))
    })
}

fn all_parsed<T: DeserializeOwned>(field: &str, parts: Vec<Verbatim>) -> Result<Vec<T>, Reject> {
    let read = |(nth, part): (usize, Verbatim)| parsed(&format!("{field}[{nth}]"), &part);
    parts.into_iter().enumerate().map(read).collect()
}

//! Recurring schedules.

use tickover_core::recurrence::Recurrence;
use tickover_service::Service;
use tickover_service::recurrences::{DescribedRecurrence, MadeRecurrence};

use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::parse::{self, RECURRENCE_FIELDS};
use crate::problem::Problem;
use crate::view::{DeletedAnswer, RecurrenceAnswer, RecurrenceView, RecurrencesAnswer, TriggerAnswer};

/// Makes a schedule: 201 for a new one, 200 for the one that the same request made before.
pub async fn create_recurrence(service: &Service, body: &[u8]) -> Result<Answer, Problem> {
    let object = body::object(body, RECURRENCE_FIELDS, Empty::IsMissing)?;
    let request = parse::recurrence(&object, None, service.now())?;
    made(service.create_recurrence(request).await?)
}

/// Makes a schedule what is asked for: 201 if there was none, 200 if there was.
pub async fn replace_recurrence(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let object = body::object(body, RECURRENCE_FIELDS, Empty::IsMissing)?;
    let request = parse::recurrence(&object, Some(id), service.now())?;
    made(service.replace_recurrence(request).await?)
}

/// A schedule with its last runs and where they stand.
pub async fn recurrence(service: &Service, id: &str) -> Result<Answer, Problem> {
    let described = service.describe_recurrence(&parse::recurrence_id("id", id)?).await?;
    Answer::ok(&RecurrenceAnswer { schedule: described.into() })
}

/// A page of schedules. The query comes as names and values, already percent-decoded.
pub async fn recurrences(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let query = parse::page_query(query)?;
    let page = service.list_recurrences(query.limit, query.cursor.as_deref()).await?;
    let schedules = page.items.into_iter().map(Into::into).collect();
    Answer::ok(&RecurrencesAnswer { schedules, cursor: page.next })
}

/// Starts no more runs by plan.
pub async fn pause_recurrence(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::recurrence_id("id", id)?;
    body::object(body, &[], Empty::IsObject)?;
    answer(service.pause_recurrence(&id).await?)
}

/// Goes on with the next occurrence.
pub async fn resume_recurrence(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::recurrence_id("id", id)?;
    body::object(body, &[], Empty::IsObject)?;
    answer(service.resume_recurrence(&id).await?)
}

/// Starts a run now.
pub async fn trigger_recurrence(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::recurrence_id("id", id)?;
    body::object(body, &[], Empty::IsObject)?;
    let (record, run) = service.trigger_recurrence(&id).await?;
    Answer::ok(&TriggerAnswer { schedule: view(record), run })
}

/// Forgets a schedule; what it has started is left alone.
pub async fn delete_recurrence(service: &Service, id: &str) -> Result<Answer, Problem> {
    let id = parse::recurrence_id("id", id)?;
    service.delete_recurrence(&id).await?;
    Answer::ok(&DeletedAnswer { id: id.to_string(), deleted: true })
}

fn made(made: MadeRecurrence) -> Result<Answer, Problem> {
    let status = if made.existed { 200 } else { 201 };
    Answer::new(status, &RecurrenceAnswer { schedule: view(made.record) })
}

fn answer(record: Recurrence) -> Result<Answer, Problem> {
    Answer::ok(&RecurrenceAnswer { schedule: view(record) })
}

/// Only what the record holds itself: a call that has taken effect must not fail for want of a payload.
fn view(record: Recurrence) -> RecurrenceView {
    DescribedRecurrence::inline(record).into()
}

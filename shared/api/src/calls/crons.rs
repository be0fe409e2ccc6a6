//! Crons.

use tickover_core::cron::Cron;
use tickover_service::Service;
use tickover_service::crons::{CreatedCron, DescribedCron};

use tickover_wire::Cursor;
use tickover_wire::answer::{CronAnswer, CronView, CronsAnswer, DeletedAnswer, TriggerAnswer};
use tickover_wire::read;

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, request, view};

/// Creates a cron: 201 for a new one, 200 if the same request created it before.
pub async fn create_cron(service: &Service, body: &[u8]) -> Result<Answer, Problem> {
    let request = request::cron(body::read(body)?, None, service.now())?;
    made(service.create_cron(request).await?)
}

/// Creates or replaces a cron: 201 if there was none with this id, 200 if there was.
pub async fn replace_cron(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let request = request::cron(body::read(body)?, Some(id), service.now())?;
    made(service.replace_cron(request).await?)
}

/// A cron with its last runs and their statuses.
pub async fn cron(service: &Service, id: &str) -> Result<Answer, Problem> {
    let described = service.describe_cron(&name::cron_id(id)?).await?;
    Answer::ok(&CronAnswer { cron: view::cron(described) })
}

/// A page of crons. The query is a list of names and values, already percent-decoded.
pub async fn crons(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let query = request::page(read::query(query)?);
    let page = service.list_crons(query.limit, query.cursor.as_deref()).await?;
    let crons = page.items.into_iter().map(view::cron).collect();
    Answer::ok(&CronsAnswer { crons, cursor: page.next.map(Cursor) })
}

/// Pauses a cron: it starts no more planned runs.
pub async fn pause_cron(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::cron_id(id)?;
    body::read_nothing(body)?;
    answer(service.pause_cron(&id).await?)
}

/// Resumes a cron with its next occurrence.
pub async fn resume_cron(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::cron_id(id)?;
    body::read_nothing(body)?;
    answer(service.resume_cron(&id).await?)
}

/// Starts a run of a cron now.
pub async fn trigger_cron(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::cron_id(id)?;
    body::read_nothing(body)?;
    let (record, run) = service.trigger_cron(&id).await?;
    Answer::ok(&TriggerAnswer { cron: inline(record), run })
}

/// Deletes a cron. The work that it has started is not changed.
pub async fn delete_cron(service: &Service, id: &str) -> Result<Answer, Problem> {
    let id = name::cron_id(id)?;
    service.delete_cron(&id).await?;
    Answer::ok(&DeletedAnswer { id, deleted: true })
}

fn made(made: CreatedCron) -> Result<Answer, Problem> {
    let status = if made.existed { 200 } else { 201 };
    let id = made.record.id.clone();
    Ok(Answer::new(status, &CronAnswer { cron: inline(made.record) })?.about(&id))
}

fn answer(record: Cron) -> Result<Answer, Problem> {
    Answer::ok(&CronAnswer { cron: inline(record) })
}

/// Shows only the payloads that are inline in the record: a call that has taken effect must not fail because a payload
/// can't be read.
fn inline(record: Cron) -> CronView {
    view::cron(DescribedCron::inline(record))
}

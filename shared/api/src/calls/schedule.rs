//! Scheduling tasks.

use tickover_core::error::Reject;
use tickover_service::describe::Described;
use tickover_service::schedule::{ScheduleRequest, Scheduled};
use tickover_service::{Service, ServiceError};

use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::parse::{self, Field, SCHEDULE_FIELDS};
use crate::problem::Problem;
use crate::view::{BatchAnswer, BatchResult, TaskAnswer, TaskView};

use super::entries;

/// Schedules a task: 201 for a new one, 200 for the one that the same request made before.
pub async fn schedule(service: &Service, body: &[u8]) -> Result<Answer, Problem> {
    let object = body::object(body, SCHEDULE_FIELDS, Empty::IsMissing)?;
    let request = parse::schedule(&object, service.now())?;
    let (status, answer) = scheduled(service, service.schedule(request).await?).await?;
    Answer::new(status, &answer)
}

/// Schedules many tasks: one result each, in order. A wrong entry fails alone.
pub async fn schedule_batch(service: &Service, body: &[u8]) -> Result<Answer, Problem> {
    let now = service.now();
    let read = |entry: &Field<'_>| -> Result<ScheduleRequest, Reject> {
        parse::schedule(&entry.entry(SCHEDULE_FIELDS)?, now)
    };
    let parsed: Vec<_> = entries(body, service.limits().batch)?.iter().map(read).collect();
    let good = parsed.iter().filter_map(|request| request.as_ref().ok()).cloned().collect();
    let mut outcomes = service.schedule_batch(good).await?.into_iter();
    let mut results = Vec::with_capacity(parsed.len());
    for request in parsed {
        let outcome = match request {
            // There are as many outcomes as good requests.
            Ok(_) => outcomes.next().unwrap_or(Err(ServiceError::Contended)),
            Err(reject) => Err(reject.into()),
        };
        let answered = match outcome {
            Ok(made) => scheduled(service, made).await,
            Err(error) => Err(error.into()),
        };
        results.push(match answered {
            Ok((status, answer)) => BatchResult::success(status, answer),
            Err(problem) => BatchResult::failure(problem),
        });
    }
    Answer::ok(&BatchAnswer { results })
}

async fn scheduled(service: &Service, scheduled: Scheduled) -> Result<(u16, TaskAnswer), Problem> {
    let Scheduled { task, input, labels, existed } = scheduled;
    // Whoever repeats a request may be after the result; only a finished task has one to load.
    let described = if existed && task.ended().is_some() {
        service.with_payloads(task).await?
    } else {
        Described { input, labels, ..Described::inline(task) }
    };
    let task = TaskView::of(&described, service.now());
    Ok((if existed { 200 } else { 201 }, TaskAnswer { task, duplicate: None }))
}

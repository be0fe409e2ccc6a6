//! Scheduling tasks.

use tickover_core::error::Reject;
use tickover_core::task::Status;
use tickover_core::trace::TraceContext;
use tickover_service::tasks::describe::Described;
use tickover_service::tasks::schedule::{ScheduleRequest, Scheduled};
use tickover_service::{Service, ServiceError};

use tickover_wire::answer::{BatchAnswer, TaskAnswer, TaskView};

use crate::answer::{Answer, result};
use crate::problem::Problem;
use crate::{body, request, view};

use super::{Call, entries};

/// Schedules a task: 201 for a new one, 200 if the same request scheduled it before.
pub async fn schedule(service: &Service, call: impl Into<Call<'_>>) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let request = traced(request::task(body::read(body)?, service.now())?, trace);
    let (status, answer) = scheduled(service, service.schedule(request).await?).await?;
    Answer::new(status, &answer)
}

/// Schedules many tasks. It answers with one result for each, in order. An invalid entry fails alone.
pub async fn schedule_batch(service: &Service, call: impl Into<Call<'_>>) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let now = service.now();
    let read = |entry: Result<_, Reject>| -> Result<ScheduleRequest, Reject> {
        Ok(traced(request::task(entry?, now)?, trace))
    };
    let parsed: Vec<_> = entries(body, service.limits().batch)?.into_iter().map(read).collect();
    let good = parsed.iter().filter_map(|request| request.as_ref().ok()).cloned().collect();
    let mut outcomes = service.schedule_batch(good).await?.into_iter();
    let mut results = Vec::with_capacity(parsed.len());
    for request in parsed {
        let outcome = match request {
            // There are as many outcomes as valid requests.
            Ok(_) => outcomes.next().unwrap_or(Err(ServiceError::Contended)),
            Err(reject) => Err(reject.into()),
        };
        let answered = match outcome {
            Ok(made) => scheduled(service, made).await,
            Err(error) => Err(error.into()),
        };
        results.push(result(answered));
    }
    Answer::ok(&BatchAnswer { results })
}

fn traced(request: ScheduleRequest, trace: Option<TraceContext>) -> ScheduleRequest {
    ScheduleRequest { trace: request.trace.or(trace), ..request }
}

/// The view of a task. If it waits, `next` says what it requires and nobody provides.
pub(super) async fn waiting(service: &Service, described: &Described) -> Result<TaskView, Problem> {
    let mut task = view::task(described, service.now());
    task.next.unprovided = service.unprovided(&described.task).await?;
    Ok(task)
}

async fn scheduled(service: &Service, scheduled: Scheduled) -> Result<(u16, TaskAnswer), Problem> {
    let Scheduled { task, input, labels, existed } = scheduled;
    // A caller that repeats a request may want the result. Only a task that has ended has one to load.
    let described = if existed && task.ended().is_some() {
        service.with_payloads(task).await?
    } else {
        // A call that schedules reads nothing to say it.
        let in_paused_queue = task.status() == Status::Pending && service.is_known_as_paused(&task.queue);
        Described { input, labels, in_paused_queue, ..Described::inline(task) }
    };
    let task = waiting(service, &described).await?;
    Ok((if existed { 200 } else { 201 }, TaskAnswer { task, duplicate: None }))
}

//! Sends the requests of the plan, and repeats those without an answer.

use futures::future::join_all;
use tickover_core::id::{ExecutionId, TaskId};
use tickover_core::payload::Json;
use tickover_service::ServiceError;

use crate::plan::execution::Content;
use crate::plan::{Job, JobRequest};
use crate::process::Process;
use crate::process::execution::event_name;
use crate::progress::Progress;

/// Executes the jobs of one client. After a death, the client repeats the job that it was at.
pub async fn client(process: Process, jobs: &[Job], progress: &Progress) {
    while let Some(job) = jobs.get(progress.jobs_done()) {
        process.gate.sleep(job.at.since(process.world.now())).await;
        let mut left = job.repeats + 1;
        while left > 0 {
            let call = carry_out(process.clone(), job.request.clone());
            // A caller that has left doesn't come back.
            let (made, answer) = process.until_left(call).await.unwrap_or_else(|| (Told::default(), Ok(())));
            progress.remember(made.tasks);
            made.executions.into_iter().for_each(|id| progress.remember_execution(id));
            match answer {
                // Another request has the id, or no open execution has it: that is an answer.
                Ok(()) | Err(ServiceError::Rejected(_)) => left -= 1,
                Err(
                    ServiceError::Contended
                    | ServiceError::Throttled
                    | ServiceError::Unavailable { .. }
                    | ServiceError::Corrupt { .. },
                ) => {}
            }
            if !process.world.hardship.is_calm {
                process.sleep(process.gate.dice.millis(0, 5_000)).await;
            }
        }
        progress.job_done();
    }
}

/// What a call has told its caller.
#[derive(Default)]
struct Told {
    tasks: Vec<TaskId>,
    executions: Vec<ExecutionId>,
}

async fn carry_out(process: Process, request: JobRequest) -> (Told, Result<(), ServiceError>) {
    let mut told = Told::default();
    let answer = ask(&process, request, &mut told).await;
    (told, answer)
}

async fn ask(process: &Process, request: JobRequest, told: &mut Told) -> Result<(), ServiceError> {
    match request {
        JobRequest::Schedule(requests) => {
            let made = process.schedule(requests).await?;
            told.tasks.extend(made.into_iter().map(|made| made.task));
        }
        JobRequest::Start(request) => told.executions.push(process.start(*request).await?),
        JobRequest::StartTogether(requests) => {
            for id in join_all(requests.into_iter().map(|request| process.start(request))).await {
                told.executions.push(id?);
            }
        }
        JobRequest::Cron(request) => drop(process.observed().0.create_cron(*request).await?),
        JobRequest::SendEvent(offering) => {
            let event = (event_name(offering.event), offering.id.clone());
            let payload = match &offering.content {
                Content::Unique(text) => Json::string(&format!("{:x} {text}", process.gate.dice.roll())),
                Content::Same(json) => json.clone(),
            };
            process.send_event(&offering.to, event, payload).await?;
            if let Some(id) = offering.id.filter(|_| offering.asks) {
                process.ask_for_answer(&offering.to, (event_name(offering.event), id)).await?;
            }
        }
    }
    Ok(())
}

//! Sends the requests of the plan, and repeats those without an answer.

use futures::future::join_all;
use tickover_core::payload::Json;
use tickover_service::ServiceError;

use crate::sim::plan::execution::Content;
use crate::sim::plan::{Job, JobRequest};
use crate::sim::process::Process;
use crate::sim::process::execution::event_name;
use crate::sim::progress::Progress;

/// Executes the jobs of one client. After a death, the client repeats the job that it was at.
pub async fn client(process: Process, jobs: &[Job], progress: &Progress) {
    while let Some(job) = jobs.get(progress.jobs_done()) {
        process.gate.sleep(job.at.since(process.world.now())).await;
        let mut left = job.repeats + 1;
        while left > 0 {
            match carry_out(&process, &job.request, progress).await {
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

async fn carry_out(process: &Process, request: &JobRequest, progress: &Progress) -> Result<(), ServiceError> {
    match request {
        JobRequest::Schedule(requests) => {
            let made = process.schedule(requests.clone()).await?;
            progress.remember(made.into_iter().map(|made| made.task));
        }
        JobRequest::Start(request) => {
            let id = process.start((**request).clone()).await?;
            progress.remember_execution(id);
        }
        JobRequest::StartTogether(requests) => {
            let started = join_all(requests.iter().map(|request| process.start(request.clone()))).await;
            for id in started {
                progress.remember_execution(id?);
            }
        }
        JobRequest::Cron(request) => drop(process.observed().0.create_cron((**request).clone()).await?),
        JobRequest::SendEvent(offering) => {
            let event = (event_name(offering.event), offering.id.clone());
            let payload = match &offering.content {
                Content::Unique(text) => Json::string(&format!("{:x} {text}", process.gate.dice.roll())),
                Content::Same(json) => json.clone(),
            };
            process.send_event(&offering.to, event, payload).await?;
        }
    }
    Ok(())
}

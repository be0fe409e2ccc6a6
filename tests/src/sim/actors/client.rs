//! Schedules what the plan says, and repeats what it got no answer to.

use tickover_service::ServiceError;

use crate::sim::plan::Job;
use crate::sim::process::Process;
use crate::sim::progress::Progress;

/// Carries out the jobs of one client. A client that dies begins again with the job it was at.
pub async fn client(process: Process, jobs: &[Job], progress: &Progress) {
    while let Some(job) = jobs.get(progress.jobs_done()) {
        process.gate.sleep(job.at.since(process.world.now())).await;
        let mut left = job.repeats + 1;
        while left > 0 {
            match process.schedule(job.requests.clone()).await {
                Ok(made) => {
                    progress.remember(made.into_iter().map(|made| made.task));
                    left -= 1;
                }
                // Another request has the id: that is an answer.
                Err(ServiceError::Rejected(_)) => left -= 1,
                Err(
                    ServiceError::Contended
                    | ServiceError::Throttled
                    | ServiceError::Unavailable { .. }
                    | ServiceError::Corrupt { .. },
                ) => {}
            }
            process.sleep(process.gate.dice.millis(0, 5_000)).await;
        }
        progress.job_done();
    }
}

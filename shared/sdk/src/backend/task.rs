//! The reports of attempts whose service is another process's.

use tickover_core::error::Reject;
use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_core::task;
use tickover_core::task::command::SignOfLife;
use tickover_service::tasks::work::{Beat, Renewed};
use tickover_wire::request::{CompleteRequest, FailError, FailRequest, HeartbeatRequest, ReleaseRequest};
use tickover_wire::{FailureCode, LeaseToken, Progress, Verbatim};

use super::Called;
use super::remote::Remote;

impl Remote {
    pub(super) async fn beat(&self, id: &TaskId, lease: &str, beat: Beat) -> Called<Renewed> {
        let Beat { sign_of, progress, details } = beat;
        let request = HeartbeatRequest {
            lease: token(lease),
            progress: progress.map(Progress),
            details: details.map(Verbatim),
            worker_only: (sign_of == SignOfLife::Worker).then_some(true),
        };
        let answer = self.patiently(&Reject::LeaseLost, || self.line.api.heartbeat(id, &request)).await?;
        Ok(Renewed {
            lease_expires_at: answer.lease_expires_at.into(),
            heartbeat_at: answer.heartbeat_at.map(Into::into),
            deadline_at: answer.deadline_at.map(Into::into),
            cancel_requested: answer.cancel_requested,
        })
    }

    pub(super) async fn complete(&self, id: &TaskId, lease: &str, output: Option<Json>) -> Called<()> {
        let request = CompleteRequest { lease: token(lease), output: output.map(Verbatim) };
        self.patiently(&Reject::LeaseLost, || self.line.api.complete(id, &request)).await.map(drop)
    }

    pub(super) async fn fail(
        &self,
        id: &TaskId,
        lease: &str,
        error: task::Failure,
        retryable: bool,
    ) -> Called<()> {
        let error = FailError {
            code: FailureCode(error.code),
            message: Some(error.message),
            retryable: Some(retryable),
        };
        let request = FailRequest { lease: token(lease), error };
        self.patiently(&Reject::LeaseLost, || self.line.api.fail(id, &request)).await.map(drop)
    }

    pub(super) async fn release(&self, id: &TaskId, lease: &str) -> Called<()> {
        let request = ReleaseRequest { lease: token(lease) };
        self.patiently(&Reject::LeaseLost, || self.line.api.release(id, &request)).await.map(drop)
    }
}

fn token(lease: &str) -> LeaseToken {
    LeaseToken(lease.to_owned())
}

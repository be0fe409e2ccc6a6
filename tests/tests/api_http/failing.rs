//! The answers to callers when the store throttles, is unreachable, or holds an unreadable record.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{BlobId, ExecutionId, GateId, Incarnation, RecordId, TaskId, WorkflowName};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::ports::{
    Collection, Consistency, DueEntry, DueRange, Listing, Page, Store, StoreError, StoreTraits,
};
use tickover_tests::scene::Scene;

use crate::support::Api;

/// A store that answers everything with one error.
struct Failing(StoreError);

#[async_trait]
impl Store for Failing {
    async fn record(&self, _: &RecordId, _: Consistency) -> Result<Option<Record>, StoreError> {
        Err(self.0.clone())
    }

    async fn records(&self, _: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        Err(self.0.clone())
    }

    async fn collection(&self, _: Collection, _: usize, _: Option<&str>) -> Result<Page<Record>, StoreError> {
        Err(self.0.clone())
    }

    async fn commit(&self, _: &[Write]) -> Result<(), StoreError> {
        Err(self.0.clone())
    }

    async fn put_blob(&self, _: &BlobRef, _: &Json) -> Result<(), StoreError> {
        Err(self.0.clone())
    }

    async fn blob(&self, _: &BlobId) -> Result<Option<Json>, StoreError> {
        Err(self.0.clone())
    }

    async fn due(&self, _: DueRange, _: usize, _: Option<&str>) -> Result<Page<DueEntry>, StoreError> {
        Err(self.0.clone())
    }

    async fn list(&self, _: Listing, _: usize, _: Option<&str>) -> Result<Page<TaskId>, StoreError> {
        Err(self.0.clone())
    }

    async fn list_executions(
        &self,
        _: &WorkflowName,
        _: usize,
        _: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        Err(self.0.clone())
    }

    async fn put_segment(
        &self,
        _: &ExecutionId,
        _: &SegmentKey,
        _: &Segment,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        Err(self.0.clone())
    }

    async fn segments(
        &self,
        _: &ExecutionId,
        _: Incarnation,
        _: u32,
        _: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        Err(self.0.clone())
    }

    async fn join(&self, _: &Parent, _: Slot, _: Timestamp) -> Result<u16, StoreError> {
        Err(self.0.clone())
    }

    async fn waiters(&self, _: &GateId, _: &str, _: usize) -> Result<Vec<Waiter>, StoreError> {
        Err(self.0.clone())
    }

    async fn next_line(&self, _: u8, _: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        Err(self.0.clone())
    }

    fn traits(&self) -> StoreTraits<'_> {
        StoreTraits::default()
    }
}

#[tokio::test]
async fn an_error_of_the_store_is_answered_with_retry_after_and_without_its_reason() {
    let reason = || "table tickover-prod at 10.0.0.7".to_owned();
    for (error, status, code, retry_after) in [
        (StoreError::Throttled, 429, "throttled", Some("1")),
        (StoreError::Unavailable { reason: reason(), is_logged: false }, 503, "unavailable", Some("1")),
        (StoreError::Conflict { current: None }, 503, "contended", Some("1")),
        (StoreError::Corrupt { reason: reason() }, 500, "corrupt_record", None),
    ] {
        let api = Api::over(Scene::over(Arc::new(Failing(error)))).await;
        for reply in [
            api.post("/v1/tasks", json!({"queue": "q", "kind": "k"})).await,
            api.get("/v1/tasks/t").await,
            api.get("/v1/tasks?status=failed").await,
        ] {
            let header = reply.headers.get("retry-after").map(|secs| secs.to_str().unwrap().to_owned());
            assert_eq!(header.as_deref(), retry_after, "{code}");
            assert!(!reply.text.contains("10.0.0.7"), "{}", reply.text);
            reply.problem(status, code);
        }
    }
}

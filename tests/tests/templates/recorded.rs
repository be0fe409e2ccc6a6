//! The service's metrics, as a recorder gets them in a scene in which each of those of the alarms and the dashboards occurs.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use metrics::{Label, with_local_recorder};
use metrics_util::debugging::DebuggingRecorder;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::execution::{DeadlineKind, ExecutionTimeouts};
use tickover_core::id::{QueueName, WorkflowName};
use tickover_core::timeout::TimeoutKind;
use tickover_service::claim::ClaimRequest;
use tickover_service::executions::StartRequest;
use tickover_service::metric::{self, ESSENTIAL};
use tickover_service::tick::TickReport;
use tickover_tests::http::Caller;

/// What the functions emit.
pub(crate) struct Recorded {
    /// As `tests/tests/functions/metrics.rs` reads it in the functions' lines.
    pub(crate) namespace: String,
    /// The dimension that each metric has, beside its labels; from there as well.
    pub(crate) function: String,
    /// The texts that labels may have as their values.
    pub(crate) values: BTreeSet<String>,
    /// The metrics that are written by default.
    pub(crate) essential: BTreeSet<String>,
    pub(crate) labels: BTreeMap<String, BTreeSet<String>>,
}

impl Recorded {
    /// Plays the scene.
    pub(crate) fn read() -> Result<Self> {
        let recorder = DebuggingRecorder::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        with_local_recorder(&recorder, || runtime.block_on(scene()));
        let kinds = [
            TimeoutKind::ScheduleToClose.as_str(),
            TimeoutKind::ScheduleToStart.as_str(),
            TimeoutKind::Heartbeat.as_str(),
            TimeoutKind::StartToClose.as_str(),
            DeadlineKind::Execution.as_str(),
            DeadlineKind::Run.as_str(),
        ];
        let mut values: BTreeSet<String> = kinds.into_iter().map(str::to_owned).collect();
        let mut labels = BTreeMap::new();
        for (key, ..) in recorder.snapshotter().snapshot().into_vec() {
            let (_, key) = key.into_parts();
            values.extend(key.labels().map(|label| label.value().to_owned()));
            let of_one = key.labels().map(Label::key).map(str::to_owned).collect();
            labels.insert(key.name().to_owned(), of_one);
        }
        for name in ESSENTIAL {
            labels.get(name).with_context(|| format!("the scene doesn't record {name}"))?;
        }
        let essential = ESSENTIAL.map(str::to_owned).into();
        Ok(Self {
            namespace: "Tickover".to_owned(),
            function: "function".to_owned(),
            values,
            essential,
            labels,
        })
    }

    /// The dimensions of a metric; `None` if nothing records it.
    pub(crate) fn dimensions(&self, metric: &str) -> Option<BTreeSet<&str>> {
        let labels = self.labels.get(metric)?;
        Some(labels.iter().chain([&self.function]).map(String::as_str).collect())
    }
}

/// A task starts late and times out, so does an execution, and a tick has no time.
async fn scene() {
    let caller = Caller::default();
    let service = &caller.scene.service;
    caller.schedule("task", json!({"timeout": "10s"})).await;
    let queue = QueueName::parse("work").unwrap();
    let timeouts = ExecutionTimeouts { execution: Some(Millis::from_secs(10)), run: None };
    let workflow = WorkflowName::parse("order").unwrap();
    service.start(StartRequest { timeouts, ..StartRequest::new(workflow, queue.clone()) }).await.unwrap();
    let claim = ClaimRequest {
        worker: None,
        max: 2,
        lease: Millis::from_secs(60),
        wait: Millis::ZERO,
        provides: vec![],
    };
    assert_eq!(service.next_work(&queue, &claim).await.unwrap().len(), 2);
    caller.scene.clock.advance(Millis::from_secs(11));
    for _ in 0..2 {
        caller.scene.tick().await.unwrap();
    }
    metric::tick(&TickReport { out_of_time: true, ..TickReport::default() }, Millis::ZERO);
}

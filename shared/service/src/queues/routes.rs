//! The queue from which a workflow's workers take their work: they announce it when they start, and a start that names
//! no queue goes there.

use std::collections::BTreeMap;

use futures::future::join_all;
use tickover_core::id::{QueueName, WorkflowName};
use tickover_core::queue::QueueRecord;

use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;
use crate::warn_unless_logged;

/// The queue of each workflow.
pub type Routes = BTreeMap<WorkflowName, QueueName>;

impl Service {
    /// Announces that a worker of these queues has the code of these workflows. Routes that are already recorded are
    /// not written again. If two queues announce one workflow, the last one counts.
    pub async fn announce_routes(&self, routes: &Routes) -> Result<(), ServiceError> {
        let looked_at = self.now();
        let known = self.queue_records().await;
        let mut fresh: BTreeMap<&QueueName, Vec<WorkflowName>> = BTreeMap::new();
        for (workflow, queue) in routes {
            if route(&known, workflow) != Some(queue) {
                fresh.entry(queue).or_default().push(workflow.clone());
            }
        }
        for (queue, workflows) in fresh {
            let now = self.now();
            // If many workers start at once, only one of them writes.
            let is_said = |record: &QueueRecord| {
                let said = |name| record.workflows.get(name).is_some_and(|said_at| *said_at >= looked_at);
                workflows.iter().all(said)
            };
            let change =
                |record: &QueueRecord| (!is_said(record)).then(|| record.with_workflows(&workflows, now));
            self.write_queue(queue, change).await?;
        }
        Ok(())
    }

    /// The queue whose workers were the last to announce a workflow's code. The answer may be a few seconds old.
    pub async fn route_of(&self, workflow: &WorkflowName) -> Option<QueueName> {
        route(&self.queue_records().await, workflow).cloned()
    }

    /// The records of all known queues. A record that can't be read now is left out, because its routes are only a
    /// help.
    pub(super) async fn queue_records(&self) -> Vec<QueueRecord> {
        let names = self.queue_names().await.unwrap_or_else(|error| {
            warn_unless_logged!(error; %error, "queues not listed");
            Vec::new()
        });
        let read = join_all(names.iter().map(|name| async move {
            let record = self.record(name).await;
            record.inspect_err(
                |error| warn_unless_logged!(error; { field::QUEUE_NAME } = %name, %error, "queue not read"),
            )
        }));
        read.await.into_iter().filter_map(Result::ok).flatten().collect()
    }
}

fn route<'a>(known: &'a [QueueRecord], workflow: &WorkflowName) -> Option<&'a QueueName> {
    let named = known.iter().filter_map(|record| Some((record.workflows.get(workflow)?, &record.name)));
    named.max().map(|(_, queue)| queue)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tickover_core::duration::Millis;
    use tickover_core::error::Reject;
    use tickover_core::id::ExecutionId;
    use tickover_core::limits::Limits;
    use tickover_core::time::Timestamp;

    use super::*;
    use crate::executions::StartRequest;
    use crate::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
    use crate::service::Ports;
    use crate::system::SystemIds;

    struct Scene {
        service: Service,
        clock: Arc<ManualClock>,
    }

    impl Scene {
        fn new() -> Self {
            Self::with(Queues::OnOpen)
        }

        fn with(queues: Queues) -> Self {
            let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_767_225_600_000)));
            let queue = Arc::new(MemoryQueue::new(clock.clone(), queues));
            let (store, ids) = (Arc::new(MemoryStore::default()), Arc::new(SystemIds));
            let service = Service::new(Ports { store, queue, clock: clock.clone(), ids }, Limits::default());
            Self { service, clock }
        }

        async fn announce(&self, queue: &str) {
            let (workflow, queue) = (workflow(), QueueName::parse(queue).unwrap());
            self.service.open_queue(&queue).await.unwrap();
            self.service.announce_routes(&[(workflow, queue)].into()).await.unwrap();
            // The records that were read before stay in use for a while.
            self.clock.advance(Millis::from_secs(10));
        }

        async fn start(&self, id: &str, any_queue: bool) -> Result<String, ServiceError> {
            let queue = QueueName::parse("workflows").unwrap();
            let id = ExecutionId::parse(id).ok();
            let request = StartRequest { id, any_queue, ..StartRequest::new(workflow(), queue) };
            Ok(self.service.start(request).await?.execution.queue.to_string())
        }
    }

    fn workflow() -> WorkflowName {
        WorkflowName::parse("order").unwrap()
    }

    fn queues(names: &[&str]) -> Queues {
        Queues::Fixed(names.iter().map(|name| QueueName::parse(*name).unwrap()).collect())
    }

    #[tokio::test]
    async fn a_start_without_a_queue_goes_to_the_last_announced_queue() {
        let place = Scene::new();
        assert_eq!(place.start("a", true).await.unwrap(), "workflows");
        place.announce("orders").await;
        assert_eq!(place.start("b", true).await.unwrap(), "orders");
        assert_eq!(place.start("c", false).await.unwrap(), "workflows");
        // The workers move to another queue. When a worker starts on the first queue again, that queue is the last one
        // again.
        place.announce("parcels").await;
        assert_eq!(place.start("d", true).await.unwrap(), "parcels");
        place.announce("orders").await;
        assert_eq!(place.start("e", true).await.unwrap(), "orders");
        // The same start finds its execution, whatever queue the workers use by then.
        assert_eq!(place.start("a", true).await.unwrap(), "workflows");
        assert_eq!(place.start("d", true).await.unwrap(), "parcels");
        let orders = place.service.describe_queue(&QueueName::parse("orders").unwrap()).await.unwrap();
        assert_eq!(orders.workflows, [workflow()]);
    }

    #[tokio::test]
    async fn before_any_worker_has_run_a_start_goes_to_the_only_queue_there_is() {
        let place = Scene::with(queues(&["orders"]));
        assert_eq!(place.start("a", true).await.unwrap(), "orders");
        assert!(place.start("b", false).await.is_err(), "it has named another queue");
        let place = Scene::with(queues(&["orders", "workflows"]));
        assert_eq!(place.start("a", true).await.unwrap(), "workflows");
        for names in [&["orders", "parcels"], &[] as &[&str]] {
            let refused = Scene::with(queues(names)).start("a", true).await;
            let is_said = matches!(
                &refused,
                Err(ServiceError::Rejected(Reject::NoRoute { workflow })) if workflow == "order"
            );
            assert!(is_said, "{names:?}: {refused:?}");
        }
    }

    #[tokio::test]
    async fn a_repeated_start_without_a_queue_finds_its_execution_though_there_are_more_queues_by_then() {
        let place = Scene::with(queues(&["orders"]));
        assert_eq!(place.start("a", true).await.unwrap(), "orders");
        let queue = Arc::new(MemoryQueue::new(place.clock.clone(), queues(&["orders", "parcels"])));
        let ports = Ports { queue, ..place.service.ports.clone() };
        let later = Scene { service: Service::new(ports, Limits::default()), clock: place.clock };
        assert_eq!(later.start("a", true).await.unwrap(), "orders");
        assert!(later.start("b", true).await.is_err(), "it is a new one");
    }

    #[tokio::test]
    async fn of_workers_that_start_at_once_only_one_announces_the_routes() {
        let place = Scene::new();
        let queue = QueueName::parse("orders").unwrap();
        place.service.open_queue(&queue).await.unwrap();
        // Another process, which has read before the first has written.
        let other = Service::new(place.service.ports.clone(), Limits::default());
        assert_eq!(other.route_of(&workflow()).await, None);
        let routes: Routes = [(workflow(), queue.clone())].into();
        place.service.announce_routes(&routes).await.unwrap();
        let version = async || place.service.fresh_record(&queue).await.unwrap().unwrap().version;
        let before = version().await;
        other.announce_routes(&routes).await.unwrap();
        assert_eq!(version().await, before);
    }

    #[tokio::test]
    async fn a_known_route_is_not_written_again() {
        let place = Scene::new();
        place.announce("orders").await;
        let queue = QueueName::parse("orders").unwrap();
        let version = async || place.service.fresh_record(&queue).await.unwrap().unwrap().version;
        let before = version().await;
        place.announce("orders").await;
        assert_eq!(version().await, before);
    }
}

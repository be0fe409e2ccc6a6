//! One call on one side, and its answer as text.

use std::fmt::Debug;

use proptest::sample::Index;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId, WorkerName};
use tickover_core::payload::Json;
use tickover_core::task::{Failure, Status, Task};
use tickover_service::ServiceError;
use tickover_service::claim::{ClaimRequest, ClaimedTask};
use tickover_service::ports::{Depth, Queue as _, TaskFilter};
use tickover_service::queues::QueueInfo;
use tickover_service::tasks::schedule::Scheduled;
use tickover_tests::scene::{queue_name, task_id};

use crate::calls::{Ago, Call, Report};
use crate::side::Side;

/// The time limit of calls that have one.
const BUDGET: Millis = Millis::from_secs(50);

/// An answer as text. Errors are compared by what a caller can see, not by what is logged.
fn answer_text<T: Debug>(answer: Result<T, ServiceError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(ServiceError::Rejected(reject)) => format!("{}: {reject:?}", reject.code()),
        Err(ServiceError::Contended) => "contended".to_owned(),
        Err(ServiceError::Throttled) => "throttled".to_owned(),
        Err(ServiceError::Unavailable { .. }) => "unavailable".to_owned(),
        Err(ServiceError::Corrupt { .. }) => "corrupt".to_owned(),
    }
}

fn request(max: usize, lease: Millis, wait: Millis) -> ClaimRequest {
    ClaimRequest { worker: WorkerName::parse("w").ok(), max, lease, wait, provides: vec![] }
}

impl Side {
    pub(crate) async fn perform(&mut self, call: &Call) -> String {
        let now = self.service.now();
        let answer = match call {
            Call::Schedule(request) => {
                let answer = self.service.schedule((**request).clone()).await;
                self.scheduled(vec![answer])
            }
            Call::Batch(requests) => match self.service.schedule_batch(requests.clone()).await {
                Ok(answers) => self.scheduled(answers),
                Err(error) => answer_text::<()>(Err(error)),
            },
            Call::Claim { queue, max, lease, wait } => {
                let answer = self.service.claim(&queue_name(queue), &request(*max, *lease, *wait)).await;
                self.claimed(answer)
            }
            Call::ClaimById { task, lease } => {
                let request = request(1, *lease, Millis::ZERO);
                let answer = self.service.claim_by_id(&self.task(*task), &request).await;
                self.claimed(answer.map(|claimed| claimed.into_iter().collect()))
            }
            Call::Report { lease, report } => self.report(*lease, *report).await,
            Call::Cancel { task, force } => answer_text(self.service.cancel(&self.task(*task), *force).await),
            Call::Retry { task } => answer_text(self.service.retry(&self.task(*task)).await),
            Call::Describe { task } => answer_text(self.service.describe(&self.task(*task)).await),
            Call::DescribeQueue(name) => {
                answer_text(self.service.describe_queue(&queue_name(name)).await.map(without_leases))
            }
            Call::Pause { queue, paused } => {
                answer_text(self.service.pause_queue(&queue_name(queue), *paused).await.map(without_leases))
            }
            Call::List { statuses, queue, limit } => self.list(statuses, *queue, *limit).await,
            Call::Tick => answer_text(self.service.tick(now, now.plus(BUDGET)).await),
            Call::Fire => self.fire().await,
            Call::Lose { queue } => self.lose(queue).await,
            Call::Advance(span) => {
                self.clock.advance(*span);
                String::new()
            }
        };
        // The time that it waited shows how often it tried.
        format!("{:?} {answer}", self.service.now())
    }

    fn scheduled(&mut self, answers: Vec<Result<Scheduled, ServiceError>>) -> String {
        for scheduled in answers.iter().flatten() {
            if !self.ids.contains(&scheduled.task.id) {
                self.ids.push(scheduled.task.id.clone());
            }
        }
        answers.into_iter().map(answer_text).collect::<Vec<_>>().join("\n")
    }

    fn claimed(&mut self, answer: Result<Vec<ClaimedTask>, ServiceError>) -> String {
        let lease = |claimed: &ClaimedTask| (claimed.task.id.clone(), claimed.token.clone());
        self.leases.extend(answer.iter().flatten().map(lease));
        answer_text(answer)
    }

    async fn report(&self, lease: Ago, report: Report) -> String {
        let ((task, token), service) = (self.lease(lease), &self.service);
        match report {
            Report::Heartbeat { progress } => answer_text(service.heartbeat(&task, &token, progress).await),
            Report::Complete { bytes } => {
                let output = bytes.map(|bytes| Json::string(&"o".repeat(bytes)));
                answer_text(service.complete(&task, &token, output).await)
            }
            Report::Fail { retryable, bytes } => {
                let error = Failure::new("broken", "e".repeat(bytes));
                answer_text(service.fail(&task, &token, error, retryable).await)
            }
            Report::Release => answer_text(service.release(&task, &token).await),
            Report::Stray { task } => answer_text(service.complete(&self.task(task), &token, None).await),
        }
    }

    /// All pages. Pages of a scan of the whole table are in no order.
    async fn list(&self, statuses: &[Status], queue: Option<&str>, limit: usize) -> String {
        let filter =
            TaskFilter { queue: queue.map(queue_name), statuses: statuses.to_vec(), ..TaskFilter::default() };
        let (mut tasks, mut cursor): (Vec<Task>, Option<String>) = (vec![], None);
        loop {
            let page = match self.service.list(&filter, limit, cursor.as_deref()).await {
                Ok(page) => page,
                Err(error) => return answer_text::<()>(Err(error)),
            };
            assert!(page.items.len() <= limit);
            tasks.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        tasks.sort_by(|one, other| one.id.cmp(&other.id));
        format!("{tasks:?}")
    }

    async fn fire(&self) -> String {
        let timers = QueueName::timers();
        let mut answers = Vec::new();
        let messages = self.queue.receive(&timers, 10, BUDGET, Millis::ZERO).await.unwrap();
        for message in messages {
            let fired = self.service.fire(&message, self.service.now().plus(BUDGET)).await;
            if fired.is_ok() {
                self.queue.delete(&timers, &message.receipt).await.unwrap();
            }
            answers.push(fired.map_or_else(|error| error.to_string(), |fired| format!("{fired:?}")));
        }
        answers.join("\n")
    }

    async fn lose(&self, queue: &str) -> String {
        let queue = queue_name(queue);
        let received = self.queue.receive(&queue, 1, BUDGET, Millis::ZERO).await.unwrap_or_default();
        for message in &received {
            self.queue.delete(&queue, &message.receipt).await.unwrap();
        }
        format!("{received:?}")
    }

    fn task(&self, index: Index) -> TaskId {
        if self.ids.is_empty() { task_id("nobody") } else { index.get(&self.ids).clone() }
    }

    fn lease(&self, ago: Ago) -> (TaskId, String) {
        let given = self.leases.iter().rev().nth(ago).or(self.leases.first());
        given.cloned().unwrap_or_else(|| (task_id("nobody"), "AAAA".to_owned()))
    }
}

/// Only a store of one machine counts what is leased, for queues in memory.
fn without_leases(info: QueueInfo) -> QueueInfo {
    let depth = Depth { in_flight: 0, ..info.depth };
    QueueInfo { depth, ..info }
}

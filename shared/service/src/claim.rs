//! Claims work: from a queue's hints, or by id for workers that read the queue themselves.

mod apart;
mod dead;
mod elsewhere;
mod full;
mod hinted;
mod messages;
mod together;

use std::pin::pin;

use futures::future::{Either, select};
pub use tickover_core::command::Isolation;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::id::{Capability, LeaseId, QueueName, TaskId, WorkerName};
use tickover_core::payload::{Json, Payload};
use tickover_core::task::Task;
use tickover_core::task::command::{Claim, Command, HintedRecord};
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::time::{Timestamp, earliest};

use crate::drive::Known;
use crate::error::ServiceError;
use crate::executions::{MayStart, Work};
use crate::gates::{PlacesOfClaim, PlacesTaken};
use crate::lease::LeaseToken;
use crate::ports::{QueueError, Received, StoreError};
use crate::queues::provides::fulfils;
use crate::service::Service;
use crate::waits;

pub use apart::{Arrived, FoundWork, Suspect};
pub use elsewhere::WorkElsewhere;
pub use hinted::{Delivered, Hinted};
pub use together::Together;

/// How long a call without a wait goes on while no message leads to work.
const TIMEOUT: Millis = Millis::new(100);
/// The claim waits out this last part of a delay, because SQS counts delays in whole seconds.
pub(crate) const WAITED_OUT: Millis = Millis::from_secs(1);
/// The same for a claim that has other work, whose leases pass meanwhile.
pub(crate) const WAITED_BESIDE: Millis = Millis::new(100);
/// How soon a message is visible again if its work couldn't be leased for now.
pub(crate) const REDELIVERY_DELAY: Millis = Millis::from_secs(1);
/// How often a waiting claim checks whether its queue is still paused.
const PAUSE_CHECK: Millis = Millis::from_secs(1);

/// A request for work.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub worker: Option<WorkerName>,
    /// At most how many tasks, 1 to 10.
    pub max: usize,
    /// The lease, which ends after this long without a heartbeat: 1 s to 12 h.
    pub lease: Millis,
    /// How long to wait for the first task, at most 20 s.
    pub wait: Millis,
    /// What the worker provides: it gets no task that requires anything else.
    pub provides: Vec<Capability>,
}

/// What a caller accepts from a queue.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) request: &'a ClaimRequest,
    /// Whether the caller takes turns as well as tasks.
    pub(crate) turns: bool,
    pub(crate) isolation: Isolation,
    /// Whether the caller has code for a kind of task; without this, for all kinds.
    pub(crate) knows: Option<&'a (dyn Fn(&str) -> bool + Send + Sync)>,
    /// Whether work that must run alone is only reported, not leased.
    pub(crate) apart: bool,
    /// Whether the worker runs inside this process, as those do that take turns.
    pub(crate) inside: bool,
    /// What the messages are gathered by before any of them is processed.
    pub(crate) together: Together,
    /// How long it may be until the start of work, for the caller to wait for it.
    pub(crate) patience: Millis,
}

impl<'a> Wanted<'a> {
    /// A worker with one piece of work at a time runs it alone, as far as the service knows.
    fn of(request: &'a ClaimRequest, turns: bool) -> Self {
        let isolation = if request.max == 1 { Isolation::Alone } else { Isolation::Shared };
        let together = Together::default();
        Self {
            request,
            turns,
            isolation,
            knows: None,
            apart: false,
            inside: turns,
            together,
            patience: WAITED_OUT,
        }
    }

    /// For a process that does several pieces of work at once and claims separately what must run alone.
    fn apart(request: &'a ClaimRequest, knows: &'a (dyn Fn(&str) -> bool + Send + Sync)) -> Self {
        let (isolation, knows) = (Isolation::Shared, Some(knows));
        Self { isolation, knows, apart: true, inside: true, ..Self::of(request, true) }
    }

    /// What decides, besides the request, on a queue that isn't paused.
    pub(crate) const fn terms(&self) -> Terms {
        Terms { isolation: self.isolation, paused: false, patience: self.patience, inside: self.inside }
    }
}

/// What the messages led to.
#[derive(Default)]
pub(crate) struct Found<'a> {
    pub(crate) work: Vec<Work>,
    /// Messages of work whose last worker was lost, perhaps because of this work.
    pub(crate) suspects: Vec<&'a Received>,
    /// Executions whose worker, which is elsewhere, must say first what limits their begin.
    pub(crate) asks: Vec<Execution>,
    pub(crate) error: Option<ServiceError>,
}

/// A task that the caller has leased.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    pub task: Task,
    pub input: Option<Json>,
    /// The last details of its progress that an earlier attempt reported.
    pub details: Option<Json>,
    /// The token to report with.
    pub token: String,
    /// When the lease ends without a heartbeat.
    pub lease_expires_at: Timestamp,
    /// By when the attempt must end: the task's deadline or the attempt's own, the earlier of the two.
    pub deadline_at: Option<Timestamp>,
}

/// The result of processing messages.
pub(crate) enum ProcessedMessages {
    Found(FoundWork),
    Nothing {
        /// Whether all messages are deleted or hidden, as far as is known.
        all_spent: bool,
    },
}

/// What decides, besides the request, whether a record is leased.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) isolation: Isolation,
    pub(crate) paused: bool,
    /// How long it may be until the start, for the claim to wait for it.
    pub(crate) patience: Millis,
    /// Whether the worker runs inside this process.
    pub(crate) inside: bool,
}

impl Terms {
    /// For a worker with one piece of work at a time, on a queue that isn't paused.
    pub(crate) const ALONE: Self =
        Self { isolation: Isolation::Alone, paused: false, patience: WAITED_OUT, inside: false };
}

/// The instant by which a running attempt must end.
pub(crate) fn attempt_deadline(task: &Task) -> Option<Timestamp> {
    earliest([task.deadline_at, task.running().and_then(|running| running.start_to_close_at)])
}

impl Service {
    /// Claims tasks from a queue, as many as there are up to `max`.
    pub async fn claim(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
    ) -> Result<Vec<ClaimedTask>, ServiceError> {
        self.claim_together(queue, request, Together::default()).await
    }

    /// Claims work from a queue: tasks, and turns of executions if `turns` is set.
    pub(crate) async fn claim_work(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        turns: bool,
    ) -> Result<Vec<Work>, ServiceError> {
        let wanted = Wanted::of(request, turns);
        Ok(self.find_work(queue, wanted).await?.work)
    }

    /// Receives messages until they lead to work, or the time to wait is over. Skips messages that lead to nothing,
    /// however many there are.
    async fn find_work(&self, queue: &QueueName, wanted: Wanted<'_>) -> Result<FoundWork, ServiceError> {
        let until = self.now().plus(wanted.request.wait);
        let messages = self.first_messages(queue, wanted.request, until).await?;
        self.find_work_among(queue, messages, wanted, until).await
    }

    /// The first messages that arrive until then; none from a queue that stays paused.
    async fn first_messages(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        until: Timestamp,
    ) -> Result<Vec<Received>, ServiceError> {
        self.require_queue(queue).await?;
        self.see_worker(queue, request.worker.as_ref());
        self.announce_provided(queue, &request.provides).await?;
        while self.is_paused(queue).await? {
            let left = self.left(until, request.wait);
            if left.is_zero() || waits::are_over() {
                return Ok(Vec::new());
            }
            self.wait_until(self.now().plus(left.min(PAUSE_CHECK))).await;
        }
        let left = self.left(until, request.wait);
        let received = self.receive(queue, request.max, request.lease, left).await?;
        if received.is_empty() {
            // A message would be noted, and its workers with it.
            Box::pin(self.note_workers(queue)).await;
        }
        Ok(received)
    }

    /// Receives messages. The wait for them may end early.
    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        lease: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        let received = self.ports.queue.receive(queue, max, lease, wait);
        match select(received, pin!(waits::over())).await {
            Either::Left((received, _)) => received,
            Either::Right(((), _)) => Ok(Vec::new()),
        }
    }

    /// Sleeps until then. The sleep may end early.
    pub(crate) async fn wait_until(&self, at: Timestamp) {
        select(self.ports.clock.sleep_until(at), pin!(waits::over())).await;
    }

    /// Processes these messages and those that come after them, until there is work or the time is over.
    async fn find_work_among(
        &self,
        queue: &QueueName,
        mut messages: Vec<Received>,
        wanted: Wanted<'_>,
        until: Timestamp,
    ) -> Result<FoundWork, ServiceError> {
        let give_up_at = until.max(self.now().plus(TIMEOUT));
        let mut skims = false;
        loop {
            let nothing = messages.is_empty();
            messages = self.gather(queue, messages, wanted).await?;
            let has_skimmed_all = nothing && skims;
            if nothing {
                skims = false;
            } else {
                let looked = if wanted.apart {
                    self.process_apart(queue, &messages, wanted).await?
                } else {
                    self.hand_out(queue, messages, wanted).await?
                };
                match looked {
                    ProcessedMessages::Found(found) => return Ok(found),
                    // If all of these were useless, many more of the same may come before the work.
                    ProcessedMessages::Nothing { all_spent } => skims = all_spent,
                }
            }
            let is_over = self.left(until, wanted.request.wait).is_zero() || waits::are_over();
            if !has_skimmed_all && ((nothing && is_over) || give_up_at <= self.now()) {
                return Ok(FoundWork::default());
            }
            messages = if skims && !self.is_paused(queue).await? {
                self.skim(queue, wanted.request).await?
            } else {
                self.first_messages(queue, wanted.request, until).await?
            };
        }
    }

    /// Processes messages for a caller who takes leased work directly.
    async fn hand_out(
        &self,
        queue: &QueueName,
        messages: Vec<Received>,
        wanted: Wanted<'_>,
    ) -> Result<ProcessedMessages, ServiceError> {
        // Messages of lost work have been received before. In a batch with other messages, lost work would never be
        // leased, so these messages are processed first.
        let (mut first, mut later): (Vec<&Received>, Vec<&Received>) = (messages.iter().collect(), vec![]);
        if wanted.isolation.is_shared() && messages.iter().any(|message| message.receive_count > 1) {
            (first, later) = messages.iter().partition(|message| message.receive_count > 1);
        }
        let found = self.work_messages(queue, &first, wanted).await;
        if found.work.is_empty() {
            let alone = Wanted { isolation: Isolation::Alone, ..wanted };
            for (nth, suspect) in found.suspects.iter().enumerate() {
                let work = self.work_messages(queue, &[*suspect], alone).await.work;
                if !work.is_empty() {
                    self.set_visibilities(queue, &found.suspects[nth + 1..], Millis::ZERO).await;
                    self.set_visibilities(queue, &later, Millis::ZERO).await;
                    return Ok(ProcessedMessages::Found(FoundWork { work, ..FoundWork::default() }));
                }
            }
        } else {
            self.set_visibilities(queue, &found.suspects, REDELIVERY_DELAY).await;
        }
        // The rest of the batch is processed too: put back each time, it would count as received before.
        let rest = self.work_messages(queue, &later, wanted).await;
        self.set_visibilities(queue, &rest.suspects, REDELIVERY_DELAY).await;
        let mut work = found.work;
        work.extend(rest.work);
        match found.error.or(rest.error) {
            _ if !work.is_empty() => Ok(ProcessedMessages::Found(FoundWork { work, ..FoundWork::default() })),
            // There is no work because of an error, so the caller gets the error.
            Some(error) => Err(error),
            None => Ok(ProcessedMessages::Nothing { all_spent: rest.suspects.is_empty() }),
        }
    }

    /// Claims a task by id: for workers that received its message themselves.
    pub async fn claim_by_id(
        &self,
        id: &TaskId,
        request: &ClaimRequest,
    ) -> Result<Option<ClaimedTask>, ServiceError> {
        let Some(task) = self.load(id).await? else { return Err(Reject::NotFound.into()) };
        if self.is_paused(&task.queue).await? || !fulfils(&request.provides, &task) {
            return Ok(None);
        }
        self.see_worker(&task.queue, request.worker.as_ref());
        Box::pin(self.note_workers(&task.queue)).await;
        let Some((task, reply)) = self.take(task, None, request, Terms::ALONE).await? else {
            return Ok(None);
        };
        match reply {
            ClaimReply::Claimed => {
                let lease = task.running().map(|running| running.lease);
                let handed_over = self.claimed_task(task, None).await;
                if let (Err(error), Some(lease)) = (&handed_over, lease) {
                    self.give_back(id, lease, error).await;
                }
                handed_over.map(Some)
            }
            ClaimReply::Stale if task.ended().is_some() => {
                Err(Reject::AlreadyTerminal { status: task.status() }.into())
            }
            ClaimReply::Leased
            | ClaimReply::Early { .. }
            | ClaimReply::Suspect
            | ClaimReply::Parked
            | ClaimReply::NeedsPlaces
            | ClaimReply::NeedsStart
            | ClaimReply::Stale => Ok(None),
        }
    }

    /// Tries to lease the task, and waits out the last moment before its start. Returns the record after that, if it
    /// still exists.
    async fn take(
        &self,
        task: Task,
        hint: Option<HintedRecord>,
        request: &ClaimRequest,
        Terms { isolation, paused, patience, inside }: Terms,
    ) -> Result<Option<(Task, ClaimReply)>, ServiceError> {
        let id = task.id.clone();
        let lease = self.new_lease();
        let began_at = self.now();
        let (mut task, mut places) = (task, PlacesOfClaim::new(lease, request.lease));
        loop {
            let held = match self.may_start(&task).await? {
                MayStart::Yes => false,
                MayStart::Held => true,
                MayStart::Ended(ended) => {
                    return Ok(ended.outcome.ok().map(|(task, _)| (task, ClaimReply::Stale)));
                }
            };
            let command = Command::Claim(Claim {
                lease,
                worker: request.worker.clone(),
                length: request.lease,
                hint,
                isolation,
                inside: inside && self.limits.alone_since.is_some(),
                paused,
                held,
                places: places.taken(),
                start: places.start(),
                start_of: places.start_of(),
            });
            let decision = self.drive(&id, Known::Record(Box::new(task)), &command).await?;
            let Ok((current, Reply::Claim(reply))) = decision.outcome else {
                self.give_up_places(&id, None, &mut places).await;
                return Ok(None);
            };
            if paused && reply == ClaimReply::Parked && current.waits_in_line() {
                // Boxed, for the same reason as below.
                Box::pin(self.passes_on(&current.waiting())).await?;
            }
            if held && reply == ClaimReply::Parked {
                // Boxed, because the future of each claim would contain all of this, and few executions are paused.
                Box::pin(self.unpark_if_resumed(&current)).await?;
            }
            match reply {
                ClaimReply::NeedsPlaces => match self.take_places(current, &mut places).await? {
                    PlacesTaken::All(current) => task = current,
                    PlacesTaken::Waits(current) => return Ok(Some((current, ClaimReply::NeedsPlaces))),
                    PlacesTaken::Gone => return Ok(None),
                },
                ClaimReply::NeedsStart => {
                    // Boxed, because the future of each claim would contain all of this, and few tasks have a rate.
                    let reserved =
                        Box::pin(self.start_for_claim(&current, &mut places, began_at, patience)).await?;
                    let Some(current) = reserved else {
                        self.give_up_places(&id, None, &mut places).await;
                        return Ok(None);
                    };
                    task = current;
                }
                ClaimReply::Early { available_at } if available_at.since(self.now()) <= patience => {
                    self.settle_start(&current, &mut places).await;
                    self.ports.clock.sleep_until(available_at).await;
                    task = current;
                }
                ClaimReply::Early { .. }
                | ClaimReply::Claimed
                | ClaimReply::Leased
                | ClaimReply::Suspect
                | ClaimReply::Parked
                | ClaimReply::Stale => {
                    self.settle_start(&current, &mut places).await;
                    let begins = current.running().is_some_and(|running| running.lease == lease);
                    if !begins && places.has_any() {
                        // Boxed, because the future of each claim would contain all of this.
                        Box::pin(self.give_up_places(&id, Some(&current), &mut places)).await;
                    }
                    return Ok(Some((current, reply)));
                }
            }
        }
    }

    /// Returns the task with its payloads and the token to report with.
    async fn claimed_task(&self, task: Task, receipt: Option<String>) -> Result<ClaimedTask, ServiceError> {
        let (input, details) =
            futures::try_join!(self.payload(task.input.as_ref()), self.payload(task.details.as_ref()))?;
        let Some(running) = task.running() else { return Err(ServiceError::Contended) };
        let token = LeaseToken { incarnation: task.incarnation, lease: running.lease, receipt }.encode();
        let (lease_expires_at, deadline_at) = (running.lease_expires_at, attempt_deadline(&task));
        let task = Task { trace: self.carried(task.trace), ..task };
        Ok(ClaimedTask { task, input, details, token, lease_expires_at, deadline_at })
    }

    /// Releases a task that was claimed and whose input couldn't be read for now, so that the task needn't wait for the
    /// end of its lease. Returns whether the release succeeded: then the task has a new message.
    async fn give_back(&self, id: &TaskId, lease: LeaseId, error: &ServiceError) -> bool {
        match error {
            ServiceError::Throttled | ServiceError::Unavailable { .. } => {}
            // A release would only have it claimed again, for ever.
            ServiceError::Rejected(_) | ServiceError::Contended | ServiceError::Corrupt { .. } => {
                return false;
            }
        }
        let released = self.drive(id, Known::Unread, &Command::Release { lease }).await;
        released.is_ok_and(|decision| decision.outcome.is_ok())
    }

    /// The text of a payload, from the record or from its own item.
    pub(crate) async fn payload(&self, payload: Option<&Payload>) -> Result<Option<Json>, ServiceError> {
        match payload {
            None => Ok(None),
            Some(Payload::Inline(json)) => Ok(Some(json.clone())),
            Some(Payload::Blob(at)) => {
                let json = self.with_retries(|| self.ports.store.blob(&at.id)).await?;
                let missing = || StoreError::Corrupt { reason: "a payload is missing".to_owned() };
                Ok(Some(json.ok_or_else(missing)?))
            }
        }
    }
}

use sha2::{Digest as _, Sha256};
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Command, EndedChild, FirstEvent, Given, Start};
use tickover_core::execution::decision::Reply;
use tickover_core::flow::{Paced, Rate};
use tickover_core::id::{ExecutionId, Incarnation, QueueName};
use tickover_core::limits;
use tickover_core::payload::Json;

use super::{SentEvent, StartRequest, Started};
use crate::contention::Tries;
use crate::drive::{CONFLICT_WAIT, Known};
use crate::error::ServiceError;
use crate::flow::{admission, recorded};
use crate::service::Service;
use crate::tasks::single::Single;

/// The shortest timeout of an execution, a run, or the code that runs after a failure.
const TIMEOUT_MIN: tickover_core::duration::Millis = tickover_core::duration::Millis::from_secs(1);
/// From this size of the input on, a read is worth its price: it finds out whether the execution exists already.
const LARGE_BYTES: usize = 1024;

impl Service {
    /// Starts an execution, or finds the execution with this id. A request with an event starts it with that event, or
    /// sends the event to the execution that is there: one of the two, because the id is taken by one write.
    pub async fn start(&self, request: StartRequest) -> Result<Started, ServiceError> {
        self.check_start(&request)?;
        match request.event.clone() {
            None => self.start_or_find(request, None).await,
            // Boxed, because the future of each start would contain all of this, and few have an event.
            Some(event) => Box::pin(self.start_or_send(request, event)).await,
        }
    }

    async fn start_or_send(&self, request: StartRequest, event: SentEvent) -> Result<Started, ServiceError> {
        let payload = match event.payload.clone() {
            Some(json) => Some(self.store_payload(json).await?),
            None => None,
        };
        let SentEvent { name, id, .. } = event.clone();
        let first = FirstEvent { name, id, payload };
        let mut tries = Tries::default();
        loop {
            let found = self.start_or_find(request.clone(), Some(first.clone())).await?;
            if !found.existed {
                return Ok(found);
            }
            let (event, kept) = (event.clone(), first.payload.clone());
            match self.offer_event(&found.execution.id, event, kept, request.trace).await {
                Ok((execution, _)) => return Ok(Started { execution, existed: true }),
                // It has ended since it was found, and may have let its key go.
                Err(ServiceError::Rejected(Reject::ExecutionClosed { .. } | Reject::NoExecution))
                    if found.execution.closed().is_none() =>
                {
                    self.once_more_soon(&mut tries, CONFLICT_WAIT).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn start_or_find(
        &self,
        request: StartRequest,
        event: Option<FirstEvent>,
    ) -> Result<Started, ServiceError> {
        let queue = self.queue_for(&request).await?;
        if let Some(single) = Single::of(&request.flow) {
            // Boxed, because the future of each start would contain all of this, and few have such a key.
            return Box::pin(self.start_single(&request, &queue, single, event.as_ref())).await;
        }
        self.start_as(request, queue, None, event).await
    }

    /// Starts an execution as the request says, or finds the one with its id. `own` is its identity, if it has one already.
    pub(super) async fn start_as(
        &self,
        request: StartRequest,
        queue: QueueName,
        own: Option<(ExecutionId, Incarnation)>,
        event: Option<FirstEvent>,
    ) -> Result<Started, ServiceError> {
        let large = request.input.as_ref().map_or(0, Json::len) >= LARGE_BYTES;
        let given = own.as_ref().map(|(id, _)| id).or(request.id.as_ref());
        let (id, mut known) = match given {
            Some(id) if large => (id.clone(), Known::Unread),
            Some(id) => (id.clone(), Known::Absent),
            None => (self.new_execution_id(), Known::Absent),
        };
        // A delayed execution reserves its start at its first turn: the rule of a rate keeps one instant and no gaps.
        let begins = request.delay.is_zero();
        let in_line = begins && !request.flow.concurrency.is_empty() && {
            let needed = recorded(&request.flow, None).gates;
            // Boxed, because the future of each caller would contain all of this, and few executions have a limit.
            Box::pin(self.read_gates(needed.iter())).await.lack_place(&needed, self.now())
        };
        // Nor does one that begins in a line: its start would be lost there.
        let rate = request.flow.rate.clone().filter(|_| begins && !in_line);
        let mut reserved = None;
        if let Some(rate) = &rate {
            // Boxed, because the future of each caller would contain all of this, and few executions have a rate.
            let (stored, start) = Box::pin(self.first_start(rate, request.id.as_ref())).await?;
            (known, reserved) = (stored.map_or(known, |stored| Known::Record(Box::new(stored))), start);
        }
        let mut start = self.start_of(request, queue, id.clone(), reserved.clone());
        start.event = event;
        if let Some((_, incarnation)) = own {
            start.incarnation = incarnation;
        }
        start.in_line = in_line;
        let command = Command::Start(start);
        let decision = self.drive_execution(&id, known, &command).await?;
        let existed = !matches!(decision.reply(), Ok(Reply::Started { existed: false }));
        if existed {
            Box::pin(self.give_unused_back(reserved.as_ref())).await;
        }
        let (execution, _) = decision.outcome?;
        Ok(Started { execution, existed })
    }

    /// Reserves the start of an execution that doesn't exist yet. Returns the one that exists.
    async fn first_start(
        &self,
        rate: &Rate,
        id: Option<&ExecutionId>,
    ) -> Result<(Option<Execution>, Option<Paced>), ServiceError> {
        if let Some(id) = id
            && let Some(stored) = self.load_execution(id).await?
        {
            return Ok((Some(stored), None));
        }
        Ok((None, self.reserve_starts(&[Some(rate)]).await.pop().flatten()))
    }

    /// The queue of the execution, after making sure that it exists.
    pub(crate) async fn queue_for(&self, request: &StartRequest) -> Result<QueueName, ServiceError> {
        if request.any_queue {
            // Boxed, because the future of each start would contain it.
            return Box::pin(self.queue_of_workers(request)).await;
        }
        self.open_queue(&request.queue).await?;
        Ok(request.queue.clone())
    }

    /// The queue of the workflow's workers. A worker in Lambda announces itself with its first message: until then it is
    /// the queue for requests that name none, and if there is no such queue, the only one there is. A request that is
    /// repeated goes to the queue of its execution if there are more by then.
    async fn queue_of_workers(&self, request: &StartRequest) -> Result<QueueName, ServiceError> {
        let queue = self.route_of(&request.workflow).await.unwrap_or_else(|| request.queue.clone());
        if self.is_there(&queue).await? {
            return Ok(queue);
        }
        // The list may still have a queue that was deleted a moment ago.
        let queues = self.ports.queue.discover().await?;
        if let [only] = queues.as_slice()
            && self.is_there(only).await?
        {
            return Ok(only.clone());
        }
        if let Some(id) = &request.id
            && let Some(known) = self.load_execution(id).await?
        {
            return Ok(known.queue);
        }
        Err(Reject::NoRoute { workflow: request.workflow.to_string() }.into())
    }

    async fn is_there(&self, queue: &QueueName) -> Result<bool, ServiceError> {
        match self.open_queue(queue).await {
            Err(ServiceError::Rejected(Reject::UnknownQueue { .. })) => Ok(false),
            opened => opened.map(|()| true),
        }
    }

    /// The start of an execution by a request, with all its random values, and with the start that was reserved for it.
    pub(crate) fn start_of(
        &self,
        request: StartRequest,
        queue: QueueName,
        id: ExecutionId,
        reserved: Option<Paced>,
    ) -> Box<Start> {
        Box::new(Start {
            id,
            incarnation: self.new_incarnation(),
            workflow: request.workflow,
            queue,
            given: Given {
                details: details(request.labels.as_ref(), request.memo.as_ref()),
                input: request.input,
                blob_ids: [self.new_blob_id(), self.new_blob_id()],
            },
            event: None,
            timeouts: request.timeouts,
            on_failure: request.on_failure,
            delay: request.delay,
            parent: request.parent,
            trace: self.carried(request.trace),
            lane: request.lane,
            admission: admission(&request.flow, reserved),
            policy: request.policy,
            ended: EndedChild::Found,
            in_line: false,
            is_fence: false,
        })
    }

    pub(crate) fn check_start(&self, request: &StartRequest) -> Result<(), Reject> {
        let length = |json: &Option<Json>| json.as_ref().map_or(0, Json::len);
        limits::check("input_bytes", length(&request.input), self.limits.payload_bytes)?;
        limits::check("labels_bytes", length(&request.labels), self.limits.labels_bytes)?;
        limits::check("memo_bytes", length(&request.memo), self.limits.memo_bytes)?;
        for json in [&request.input, &request.memo].into_iter().flatten() {
            limits::check("json_depth", json.depth(), limits::JSON_DEPTH_MAX)?;
        }
        let timeouts = [
            ("execution_timeout", request.timeouts.execution),
            ("run_timeout", request.timeouts.run),
            ("on_failure_timeout", request.on_failure),
        ];
        for (name, timeout) in timeouts {
            if timeout.is_some_and(|timeout| timeout < TIMEOUT_MIN) {
                return Err(Reject::field(name, "must be at least 1s"));
            }
            if timeout.is_some_and(|timeout| timeout > limits::SPAN_MAX) {
                return Err(Reject::field(name, "must be at most a year"));
            }
        }
        if request.delay > limits::SPAN_MAX {
            return Err(Reject::field("delay", "must be at most a year"));
        }
        if let Some(event) = &request.event {
            self.check_event(event).map_err(|refused| refused.under("event"))?;
        }
        check_debounce(request)
    }
}

/// Refuses what can't be together with a burst of which only the last request runs.
fn check_debounce(request: &StartRequest) -> Result<(), Reject> {
    if request.flow.debounce.is_none() {
        return Ok(());
    }
    let problem = if request.flow.unique.is_some() {
        "not allowed with `unique`"
    } else if request.id.is_some() {
        "not allowed with `id`: several requests become one execution"
    } else if !request.delay.is_zero() {
        "not allowed with `delay`: its `wait` is the delay"
    } else if request.event.is_some() {
        "not allowed with `event`: only the last request of a burst counts, and no event may be lost"
    } else {
        return Ok(());
    };
    Err(Reject::field("debounce", problem))
}

/// Whether an execution was written only so that another one couldn't be: all others begin as open.
pub(super) fn is_fence(execution: &Execution) -> bool {
    execution.version == 1 && execution.closed().is_some()
}

/// Labels and memo as one document; `None` if there are neither.
pub(super) fn details(labels: Option<&Json>, memo: Option<&Json>) -> Option<Json> {
    let part = |name: &str, json: Option<&Json>| json.map(|json| format!("\"{name}\":{}", json.as_str()));
    let parts: Vec<String> = [part("labels", labels), part("memo", memo)].into_iter().flatten().collect();
    if parts.is_empty() { None } else { Json::parse(format!("{{{}}}", parts.join(","))) }
}

/// The first bytes of SHA-256 over the parts, each with its length before it.
pub(super) fn hash<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; N];
    let whole = hash.finalize();
    for (byte, from) in bytes.iter_mut().zip(whole.iter()) {
        *byte = *from;
    }
    bytes
}

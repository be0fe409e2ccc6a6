use sha2::{Digest as _, Sha256};
use tickover_core::error::Reject;
use tickover_core::execution::command::{Command, Start};
use tickover_core::execution::decision::Reply;
use tickover_core::id::{ExecutionId, Fingerprint, QueueName};
use tickover_core::limits;
use tickover_core::payload::Json;

use super::{StartRequest, Started};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;
use crate::tasks::schedule::{digest, minified};

/// The shortest timeout of an execution, a run, or the code that runs after a failure.
const TIMEOUT_MIN: tickover_core::duration::Millis = tickover_core::duration::Millis::from_secs(1);
/// From this size of the input on, a read is worth its price: it finds out whether the execution exists already.
const LARGE_BYTES: usize = 1024;

impl Service {
    /// Starts an execution, or finds the execution with this id.
    pub async fn start(&self, request: StartRequest) -> Result<Started, ServiceError> {
        self.check_start(&request)?;
        let queue = self.queue_for(&request).await?;
        let large = request.input.as_ref().map_or(0, Json::len) >= LARGE_BYTES;
        let (id, known) = match &request.id {
            Some(id) if large => (id.clone(), Known::Unread),
            Some(id) => (id.clone(), Known::Absent),
            None => (self.new_execution_id(), Known::Absent),
        };
        let command = self.start_command(request, queue, id.clone());
        let (execution, reply) = self.drive_execution(&id, known, &command).await?.outcome?;
        let existed = matches!(reply, Reply::Started { existed: true });
        Ok(Started { execution, existed })
    }

    /// The queue of the execution, after making sure that it exists.
    pub(crate) async fn queue_for(&self, request: &StartRequest) -> Result<QueueName, ServiceError> {
        let route = if request.any_queue { self.route_of(&request.workflow).await } else { None };
        let queue = route.unwrap_or_else(|| request.queue.clone());
        self.open_queue(&queue).await?;
        Ok(queue)
    }

    /// The command of a request, with all its random values.
    pub(crate) fn start_command(&self, request: StartRequest, queue: QueueName, id: ExecutionId) -> Command {
        // From the requested queue: a repeated start stays the same, even if the workers have moved to another queue.
        let fingerprint = fingerprint(&request);
        Command::Start(Box::new(Start {
            id,
            incarnation: self.new_incarnation(),
            workflow: request.workflow,
            queue,
            input: request.input,
            details: details(request.labels.as_ref(), request.memo.as_ref()),
            timeouts: request.timeouts,
            on_failure: request.on_failure,
            delay: request.delay,
            parent: request.parent,
            trace: self.carried(request.trace),
            lane: request.lane,
            policy: request.policy,
            fingerprint,
            blob_ids: [self.new_blob_id(), self.new_blob_id()],
        }))
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
        Ok(())
    }
}

/// Labels and memo as one document; `None` if there are neither.
fn details(labels: Option<&Json>, memo: Option<&Json>) -> Option<Json> {
    let part = |name: &str, json: Option<&Json>| json.map(|json| format!("\"{name}\":{}", json.as_str()));
    let parts: Vec<String> = [part("labels", labels), part("memo", memo)].into_iter().flatten().collect();
    if parts.is_empty() { None } else { Json::parse(format!("{{{}}}", parts.join(","))) }
}

fn fingerprint(request: &StartRequest) -> Fingerprint {
    let text = |json: &Option<Json>| json.as_ref().map(|json| minified(json.as_str())).unwrap_or_default();
    let span = |span: Option<tickover_core::duration::Millis>| {
        span.map(|span| span.as_u64().to_string()).unwrap_or_default()
    };
    let (input, labels, memo) = (text(&request.input), text(&request.labels), text(&request.memo));
    let [execution, run, delay] =
        [request.timeouts.execution, request.timeouts.run, Some(request.delay)].map(span);
    let mut parts: Vec<&str> = vec![request.workflow.as_str(), request.queue.as_str()];
    parts.extend([&input, &labels, &memo, &execution, &run, &delay].map(String::as_str));
    // Requests without an order have the digest that they had before there was one.
    let order = serde_json::to_string(&request.lane).ok().filter(|_| !request.lane.is_plain());
    parts.extend(order.as_deref());
    digest(&parts)
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

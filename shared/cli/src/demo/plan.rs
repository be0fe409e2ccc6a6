//! The demo's tasks and their expected outcomes.

use anyhow::Context as _;
use serde_json::{Value, json};
use tickover_core::id::{QueueName, TaskId};
use tickover_wire::read;
use tickover_wire::request::ScheduleRequest;

/// The task whose worker is killed.
pub(super) const INTERRUPTED: &str = "document-interrupted";
/// The task whose worker sends nothing until the deadline has passed.
pub(super) const OVERDUE: &str = "invoice-overdue";
/// The task that fails twice.
const FLAKY: &str = "invoice-flaky";

/// A task to schedule, and its expected outcome.
pub(super) struct Planned {
    pub(super) id: TaskId,
    /// The request to send.
    pub(super) request: ScheduleRequest,
    /// The expected status at its end.
    pub(super) status: &'static str,
    /// The expected outcomes of its attempts, in order.
    pub(super) attempts: &'static [&'static str],
    /// The expected result.
    pub(super) output: Option<Value>,
}

impl Planned {
    /// The queue of its workers.
    pub(super) fn queue(&self) -> anyhow::Result<&QueueName> {
        self.request.queue.as_ref().with_context(|| format!("{} has a queue", self.id))
    }

    /// A task that completes with this result at its first attempt.
    fn of(id: &str, mut request: Value, output: Value) -> anyhow::Result<Self> {
        request["id"] = id.into();
        Ok(Self {
            id: TaskId::parse(id)?,
            request: read::body(&request.to_string())?,
            status: "completed",
            attempts: &["completed"],
            output: Some(output),
        })
    }

    /// Whether the demo handles it separately, before the workers start.
    pub(super) fn is_special(&self) -> bool {
        [INTERRUPTED, OVERDUE].contains(&self.id.as_str())
    }
}

/// The planned task of this id.
pub(super) fn find<'a>(plan: &'a [Planned], id: &str) -> anyhow::Result<&'a Planned> {
    plan.iter().find(|planned| planned.id.as_str() == id).with_context(|| format!("{id} is planned"))
}

/// All tasks.
pub(super) fn plan() -> anyhow::Result<Vec<Planned>> {
    let texts = [
        "Nothing runs, and still the clock ticks over.",
        "A message is a hint; the table is the truth.",
        "A result that comes too late is refused.",
        "The first result counts, however often it is reported.",
        "If a worker crashes, another one takes over its task.",
        "Early is harmless, late never happens.",
    ];
    let orders: [&[(u64, u64)]; 5] = [
        &[(1, 129_900), (2, 4_950)],
        &[(12, 250)],
        &[(3, 1_999), (1, 499), (7, 10)],
        &[(1, 1)],
        &[(40, 1_275), (2, 89_000)],
    ];
    let documents =
        texts.iter().enumerate().map(|(number, text)| document(&format!("document-{}", number + 1), text));
    let invoices =
        orders.iter().enumerate().map(|(number, lines)| invoice(&format!("invoice-{}", number + 1), lines));
    documents.chain(invoices).chain([flaky(), interrupted(), overdue()]).collect()
}

fn document(id: &str, text: &str) -> anyhow::Result<Planned> {
    let longest = text.split(' ').max_by_key(|word| word.len()).unwrap_or_default();
    let input = json!({"document": {"text": text}});
    let request = json!({"queue": "documents", "kind": "count-words", "input": input, "timeout": "1m"});
    Planned::of(id, request, json!({"words": text.split(' ').count(), "longest": longest}))
}

fn invoice(id: &str, lines: &[(u64, u64)]) -> anyhow::Result<Planned> {
    invoice_with(id, lines, 0, &json!({"timeout": "1m"}))
}

fn invoice_with(id: &str, lines: &[(u64, u64)], fails: u32, options: &Value) -> anyhow::Result<Planned> {
    let total: u64 = lines.iter().map(|(quantity, price_cents)| quantity * price_cents).sum();
    let lines: Vec<Value> = lines
        .iter()
        .map(|(quantity, price_cents)| json!({"quantity": quantity, "price_cents": price_cents}))
        .collect();
    let input = json!({"invoice": {"lines": lines, "fails_before_attempt": fails}});
    let mut request = json!({"queue": "invoices", "kind": "total-invoice", "input": input});
    for (name, value) in options.as_object().into_iter().flatten() {
        request[name] = value.clone();
    }
    Planned::of(id, request, json!({"total_cents": total}))
}

fn flaky() -> anyhow::Result<Planned> {
    let retry = json!({"max_attempts": 3, "delay": "400ms", "backoff": 2});
    let options = json!({"timeout": "1m", "retry": retry});
    let planned = invoice_with(FLAKY, &[(2, 5_000), (1, 2_500)], 3, &options)?;
    Ok(Planned { attempts: &["failed", "failed", "completed"], ..planned })
}

fn interrupted() -> anyhow::Result<Planned> {
    let planned = document(INTERRUPTED, "Killed in the middle, and done all the same.")?;
    Ok(Planned { attempts: &["lost", "completed"], ..planned })
}

fn overdue() -> anyhow::Result<Planned> {
    let planned = invoice_with(OVERDUE, &[(1, 100)], 0, &json!({"timeout": "3s"}))?;
    Ok(Planned { status: "timed_out", attempts: &["timed_out"], output: None, ..planned })
}

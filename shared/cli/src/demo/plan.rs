//! The demo's tasks and what is to become of each.

use anyhow::Context as _;
use serde_json::{Value, json};

/// The task whose worker is killed.
pub(super) const INTERRUPTED: &str = "document-interrupted";
/// The task whose worker goes silent until the deadline has passed.
pub(super) const OVERDUE: &str = "invoice-overdue";
/// The task that fails twice.
const FLAKY: &str = "invoice-flaky";

/// A task to schedule and what should come of it.
pub(super) struct Planned {
    /// The body of the request.
    pub(super) request: Value,
    /// The status it should end in.
    pub(super) status: &'static str,
    /// How its attempts should end, in order.
    pub(super) attempts: &'static [&'static str],
    /// The result it should have.
    pub(super) output: Option<Value>,
}

impl Planned {
    /// Its id.
    pub(super) fn id(&self) -> String {
        self.request["id"].as_str().unwrap_or_default().to_owned()
    }

    /// Its queue.
    pub(super) fn queue(&self) -> &str {
        self.request["queue"].as_str().unwrap_or_default()
    }

    /// Whether it has a scene of its own before the workers start.
    pub(super) fn is_special(&self) -> bool {
        [INTERRUPTED, OVERDUE].contains(&self.id().as_str())
    }
}

/// The planned task of this id.
pub(super) fn find<'a>(plan: &'a [Planned], id: &str) -> anyhow::Result<&'a Planned> {
    plan.iter().find(|planned| planned.id() == id).with_context(|| format!("{id} is planned"))
}

/// All tasks.
pub(super) fn plan() -> Vec<Planned> {
    let texts = [
        "Nothing runs, and still the clock ticks over.",
        "A message is a hint; the table is the truth.",
        "Whoever is late is told so.",
        "The first result stands, however often it is reported.",
        "A worker that dies leaves its task to the next one.",
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

fn document(id: &str, text: &str) -> Planned {
    let longest = text.split(' ').max_by_key(|word| word.len()).unwrap_or_default();
    Planned {
        request: json!({
            "id": id, "queue": "documents", "kind": "count-words",
            "input": {"document": {"text": text}}, "timeout": "1m",
        }),
        status: "completed",
        attempts: &["completed"],
        output: Some(json!({"words": text.split(' ').count(), "longest": longest})),
    }
}

fn invoice(id: &str, lines: &[(u64, u64)]) -> Planned {
    let total: u64 = lines.iter().map(|(quantity, price_cents)| quantity * price_cents).sum();
    let lines: Vec<Value> = lines
        .iter()
        .map(|(quantity, price_cents)| json!({"quantity": quantity, "price_cents": price_cents}))
        .collect();
    Planned {
        request: json!({
            "id": id, "queue": "invoices", "kind": "total-invoice",
            "input": {"invoice": {"lines": lines}}, "timeout": "1m",
        }),
        status: "completed",
        attempts: &["completed"],
        output: Some(json!({"total_cents": total})),
    }
}

fn flaky() -> Planned {
    let mut planned = invoice(FLAKY, &[(2, 5_000), (1, 2_500)]);
    planned.request["input"]["invoice"]["fails_before_attempt"] = json!(3);
    planned.request["retry"] = json!({"max_attempts": 3, "delay": "400ms", "backoff": 2});
    planned.attempts = &["failed", "failed", "completed"];
    planned
}

fn interrupted() -> Planned {
    let planned = document(INTERRUPTED, "Killed in the middle, and done all the same.");
    Planned { attempts: &["lost", "completed"], ..planned }
}

fn overdue() -> Planned {
    let mut planned = invoice(OVERDUE, &[(1, 100)]);
    planned.request["timeout"] = json!("3s");
    Planned { status: "timed_out", attempts: &["timed_out"], output: None, ..planned }
}

//! What a request asks of flow control, in the forms in which it is stored and compared.

use tickover_core::execution::Admission;
use tickover_core::flow::{Concurrency, Flow, FlowRequest, Gated, Paced, Priority, Rate, UniqueWindow};
use tickover_core::gate::shown;
use tickover_core::id::{Fingerprint, FlowKey};
use tickover_core::lane::Lane;

use crate::tasks::schedule::digest;

/// The digest by which a key of concurrency and rates is stored.
pub fn gate_digest(key: &FlowKey) -> Fingerprint {
    digest(&["gate", key.as_str()])
}

/// Why an execution that has places at keys of these digests can't start a step or child that asks for this: that would
/// wait for the execution, which waits for it.
pub fn own_key(own: &[Fingerprint], asked: &FlowRequest) -> Option<String> {
    let own = asked.concurrency.iter().find(|asked| own.contains(&gate_digest(&asked.key)))?;
    let key = own.key.as_str();
    Some(format!("its execution has a place at the key {key:?}, and would wait for itself"))
}

/// The digest by which a task's tenant is stored.
pub fn fairness_digest(key: &FlowKey) -> Fingerprint {
    digest(&["fairness", key.as_str()])
}

/// Where the messages of an execution stand in their queue.
pub fn lane(priority: Priority, fairness_key: Option<&FlowKey>) -> Lane {
    Lane { priority, tenant: fairness_key.map(fairness_digest) }
}

/// The part of a request that a task's record keeps. Places are taken in the order of the digests, whatever the order
/// of the keys in the request. `start` is the one that was reserved by its rate.
pub(crate) fn recorded(request: &FlowRequest, start: Option<Paced>) -> Flow {
    let place = |asked: &Concurrency| Gated {
        key: gate_digest(&asked.key),
        limit: asked.limit,
        text: shown(&asked.key),
    };
    let mut gates: Vec<_> = request.concurrency.iter().map(place).collect();
    gates.sort_by_key(|gated| *gated.key.as_bytes());
    Flow {
        gates,
        priority: request.priority,
        fairness: request.fairness.as_ref().map(fairness_digest),
        fairness_text: request.fairness.as_ref().map(shown).unwrap_or_default(),
        requires: request.requires.clone(),
        paced: start.or_else(|| request.rate.as_ref().map(paced)),
        cron: request.cron.clone(),
    }
}

/// The part of a request that an execution's record keeps; `None` if nothing limits its start.
pub(crate) fn admission(request: &FlowRequest, start: Option<Paced>) -> Option<Box<Admission>> {
    let Flow { gates, paced, cron, .. } = recorded(request, start);
    let asks = !gates.is_empty() || paced.is_some() || cron.is_some();
    asks.then(|| Box::new(Admission { gates, held: None, paced, cron }))
}

/// A rate without a reserved start.
pub(crate) fn paced(rate: &Rate) -> Paced {
    Paced {
        key: gate_digest(&rate.key),
        pace: rate.pace(),
        text: shown(&rate.key),
        start: None,
        put_off: false,
    }
}

/// A text that is the same for the same request, and empty for a task that asks for nothing. A cron that has another
/// policy by now asks for the same run.
pub(crate) fn text(request: &FlowRequest) -> String {
    let FlowRequest { concurrency, rate, priority, fairness, unique, debounce, requires, cron } = request;
    if *request == (FlowRequest { cron: cron.clone(), ..FlowRequest::default() }) {
        return String::new();
    }
    let mut parts = vec![priority.as_str().to_owned()];
    parts.extend(concurrency.iter().map(|asked| format!("c{:?}{}", asked.key.as_str(), asked.limit)));
    parts.extend(rate.iter().map(|rate| {
        let Rate { key, limit, per, burst } = rate;
        format!("r{:?}{limit}/{}/{burst}", key.as_str(), per.as_u64())
    }));
    parts.extend(fairness.iter().map(|key| format!("f{:?}", key.as_str())));
    parts.extend(unique.iter().map(|unique| {
        let window = match unique.window {
            UniqueWindow::Open => "open".to_owned(),
            UniqueWindow::Waiting => "waiting".to_owned(),
            UniqueWindow::For(span) => span.as_u64().to_string(),
        };
        format!("u{:?}{window}/{}", unique.key.as_str(), unique.on_conflict.as_str())
    }));
    parts.extend(debounce.iter().map(|bounce| {
        format!("d{:?}{}/{}", bounce.key.as_str(), bounce.wait.as_u64(), bounce.at_most.as_u64())
    }));
    parts.extend(requires.iter().map(|name| format!("n{name}")));
    parts.join(" ")
}

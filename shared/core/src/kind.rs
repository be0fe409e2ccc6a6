//! Defaults for the tasks of a kind on a queue: what a request leaves open is filled in from them.
//!
//! They are in the queue's record, so a task costs no read of its own for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::by::By;
use crate::error::Reject;
use crate::flow::FlowRequest;
use crate::id::TaskKind;
use crate::limits;
use crate::payload::Json;
use crate::retry::RetryPolicy;
use crate::timeout::Timeouts;

/// The most bytes that the defaults of all kinds of a queue take in its record. With them and the workflows of an
/// ordinary worker, the record is read with one unit at most, and one half where a read may be a second old.
pub const KINDS_BYTES_MAX: usize = 3 * 1024;

/// What a task's request may leave open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Policies {
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub retry: RetryPolicy,
    #[serde(rename = "t", default, skip_serializing_if = "is_default")]
    pub timeouts: Timeouts,
    #[serde(rename = "l", default, skip_serializing_if = "is_default")]
    pub flow: FlowRequest,
}

/// A policy that can be given and yet be equal to its absence, such as a retry policy without retries. Given so, it
/// overrides a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    Retry,
    Concurrency,
    Priority,
    Requires,
}

/// The defaults of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindDefaults {
    /// As an operator gave them, for answers.
    #[serde(rename = "g")]
    pub given: Json,
    /// The same, parsed.
    #[serde(rename = "p", default)]
    pub policies: Policies,
    /// Who set them.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Box<By>>,
}

impl Policies {
    /// These, completed by defaults. `given` lists the policies that a request gave although they are equal to their
    /// absence.
    #[must_use]
    pub fn or(self, defaults: &Self, given: &[Policy]) -> Self {
        let open = |policy, is_empty: bool| is_empty && !given.contains(&policy);
        let Self { mut retry, timeouts: own, mut flow } = self;
        let Self { retry: their_retry, timeouts, flow: theirs } = defaults;
        if open(Policy::Retry, is_default(&retry)) {
            retry = their_retry.clone();
        }
        if open(Policy::Concurrency, flow.concurrency.is_empty()) {
            flow.concurrency.clone_from(&theirs.concurrency);
        }
        if open(Policy::Priority, is_default(&flow.priority)) {
            flow.priority = theirs.priority;
        }
        if open(Policy::Requires, flow.requires.is_empty()) {
            flow.requires.clone_from(&theirs.requires);
        }
        flow.rate = flow.rate.or_else(|| theirs.rate.clone());
        flow.fairness = flow.fairness.or_else(|| theirs.fairness.clone());
        let timeouts = Timeouts {
            schedule_to_close: own.schedule_to_close.or(timeouts.schedule_to_close),
            schedule_to_start: own.schedule_to_start.or(timeouts.schedule_to_start),
            heartbeat: own.heartbeat.or(timeouts.heartbeat),
            start_to_close: own.start_to_close.or(timeouts.start_to_close),
        };
        Self { retry, timeouts, flow }
    }
}

/// Rejects defaults that don't fit into a queue's record together.
pub fn check(kinds: &BTreeMap<TaskKind, KindDefaults>) -> Result<(), Reject> {
    // Policies always serialise; if they didn't, they would count as nothing.
    let bytes = serde_json::to_string(kinds).map_or(0, |text| text.len());
    limits::check("kinds_bytes", bytes, KINDS_BYTES_MAX)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::Millis;
    use crate::flow::Priority;
    use crate::id::{Capability, FlowKey};
    use crate::timeout::{AttemptTimeout, LifeTimeout, OnTimeout};

    fn gpu() -> Capability {
        Capability::parse("gpu").unwrap()
    }

    fn defaults() -> Policies {
        let after = Millis::from_secs(60);
        let timeouts = Timeouts {
            schedule_to_close: Some(LifeTimeout { after, is_error: true }),
            heartbeat: Some(AttemptTimeout { after, on_timeout: OnTimeout::Retry }),
            ..Timeouts::default()
        };
        let flow = FlowRequest {
            priority: Priority::Low,
            fairness: FlowKey::parse("all").ok(),
            requires: vec![gpu()],
            ..FlowRequest::default()
        };
        Policies { retry: RetryPolicy::fixed(3, Millis::from_secs(1)), timeouts, flow }
    }

    #[test]
    fn defaults_fill_in_what_a_request_leaves_open() {
        assert_eq!(Policies::default().or(&defaults(), &[]), defaults());
        let after = Millis::from_secs(5);
        let own = Policies {
            retry: RetryPolicy::fixed(1, after),
            timeouts: Timeouts {
                schedule_to_close: Some(LifeTimeout { after, is_error: false }),
                ..Timeouts::default()
            },
            flow: FlowRequest { priority: Priority::High, ..FlowRequest::default() },
        };
        let both = own.clone().or(&defaults(), &[]);
        assert_eq!((both.retry, both.flow.priority), (own.retry, Priority::High));
        assert_eq!(both.timeouts.schedule_to_close, own.timeouts.schedule_to_close);
        assert_eq!(both.timeouts.heartbeat, defaults().timeouts.heartbeat);
        assert_eq!((both.flow.fairness, both.flow.requires), (defaults().flow.fairness, vec![gpu()]));
    }

    #[test]
    fn a_policy_that_is_given_as_nothing_overrides_its_default() {
        let given = [Policy::Retry, Policy::Priority, Policy::Requires, Policy::Concurrency];
        let both = Policies::default().or(&defaults(), &given);
        assert_eq!((both.retry, both.flow.priority), (RetryPolicy::none(), Priority::Normal));
        assert!(both.flow.requires.is_empty());
    }

    #[test]
    fn the_defaults_of_a_queue_are_bounded_together() {
        let kind = |number: usize| TaskKind::parse(format!("kind-{number}")).unwrap();
        let some = KindDefaults {
            given: Json::parse(r#"{"priority":"low"}"#).unwrap(),
            policies: defaults(),
            by: None,
        };
        let of = |count| (0..count).map(|number| (kind(number), some.clone())).collect::<BTreeMap<_, _>>();
        assert_eq!(check(&of(5)), Ok(()));
        let Err(Reject::LimitExceeded { limit, value, maximum }) = check(&of(50)) else {
            panic!("50 kinds don't fit")
        };
        assert_eq!((limit, maximum), ("kinds_bytes", KINDS_BYTES_MAX));
        assert!(value > maximum);
    }
}

//! What is asked of flow control for an execution: by its workflow's attribute, and by whoever starts it.

use std::fmt::Display;

use tickover_core::flow::{FlowRequest, OnConflict, Priority, UniqueWindow};
use tickover_core::lane::Lane;
use tickover_service::flow::fairness_digest;

use super::{IntoMillis, flow};

/// What is asked of flow control for an execution. Of several problems, it keeps the first.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Asked {
    flow: FlowRequest,
    /// Whether the priority was given: the default one may be.
    has_priority: bool,
    problem: Option<(&'static str, String)>,
}

impl Asked {
    #[must_use]
    pub fn concurrency(self, key: impl Display, limit: u16) -> Self {
        self.change("concurrency", |flow| flow::concurrency(flow, key, limit))
    }

    #[must_use]
    pub fn rate(self, key: impl Display, limit: u32, per: impl IntoMillis) -> Self {
        self.change("rate", |flow| flow::rate(flow, key, limit, per))
    }

    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        self.change("rate", |flow| flow::burst(flow, burst))
    }

    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.has_priority = true;
        self.flow.priority = priority;
        self
    }

    #[must_use]
    pub fn fairness_key(self, key: impl Display) -> Self {
        self.change("fairness_key", |flow| flow::fairness(flow, key))
    }

    pub(crate) fn unique(self, key: impl Display, window: UniqueWindow, on_conflict: OnConflict) -> Self {
        self.change("unique", |flow| flow::unique(flow, key, window, on_conflict))
    }

    pub(crate) fn debounce(self, key: impl Display, wait: impl IntoMillis, at_most: impl IntoMillis) -> Self {
        self.change("debounce", |flow| flow::debounce(flow, key, wait, at_most))
    }

    /// What limits the start, or the first problem and its field.
    pub(crate) fn checked(&self) -> Result<&FlowRequest, (&'static str, &str)> {
        match &self.problem {
            None => Ok(&self.flow),
            Some((field, problem)) => Err((*field, problem.as_str())),
        }
    }

    /// The priority, if one was given.
    pub(crate) fn given_priority(&self) -> Option<Priority> {
        self.has_priority.then_some(self.flow.priority)
    }

    /// Where a child's messages stand in their queue: where its parent's do, unless it asks for another place.
    pub(crate) fn lane_within(&self, parent: Lane) -> Lane {
        Lane {
            priority: self.given_priority().unwrap_or(parent.priority),
            tenant: self.flow.fairness.as_ref().map(fairness_digest).or(parent.tenant),
        }
    }

    fn change(
        mut self,
        field: &'static str,
        change: impl FnOnce(&mut FlowRequest) -> Result<(), String>,
    ) -> Self {
        if let Err(problem) = change(&mut self.flow) {
            self.problem.get_or_insert((field, problem));
        }
        self
    }
}

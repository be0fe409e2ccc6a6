//! Operations of operators on many records at once: a record that says what to do with which tasks or executions, and
//! how far it has come.
//!
//! It is carried out in pages. A page may be carried out twice, by a process that was cut off and by the next one. So
//! each action is one that may be repeated, and leaves alone what changed after the operation was recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::by::{By, Caller, PageOf};
use crate::due::{Due, DueKind, shard_of_name};
use crate::duration::Millis;
use crate::execution::Execution;
use crate::execution::journal::{Entry, Happened};
use crate::id::{EventId, Fingerprint, Nonce, OperationId};
use crate::payload::Payload;
use crate::task::Task;
use crate::time::Timestamp;

/// The version of the stored format. Readers refuse every other version with an error and never rewrite it.
pub const FORMAT: u8 = 1;
/// Most records of a page.
pub const PAGE: usize = 100;
/// An operation that has noted no page for this long may have lost its process: a tick continues it.
pub const LOST_AFTER: Millis = Millis::from_secs(60);
/// With less than this left of its due slot, a page moves the slot. So most pages cost no write of the index.
const SLOT_MOVES_AT: Millis = Millis::from_secs(30);
/// How long an operation is kept after its end.
pub const KEPT_FOR: Millis = Millis::from_secs(7 * 86_400);

/// What an operation does with each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A new run of an execution that has ended, which keeps the results of the steps that completed; a new attempt
    /// of a task that has ended without a result.
    Retry,
    /// The step because of which an execution failed runs again, in the same run.
    RetryStep,
    /// A new run of an execution that has ended, without results of the last one.
    Restart,
    /// An execution or task is asked to end.
    Cancel,
    /// An execution or task ends at once.
    Terminate,
    /// An event for an execution that is open.
    SendEvent,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 6] =
        [Self::Retry, Self::RetryStep, Self::Restart, Self::Cancel, Self::Terminate, Self::SendEvent];

    /// The name in requests and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::RetryStep => "retry_step",
            Self::Restart => "restart",
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::SendEvent => "send_event",
        }
    }
}

/// On what an operation works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Executions,
    Tasks,
}

/// The record of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The version of its format.
    #[serde(rename = "v")]
    pub format: u8,
    pub id: OperationId,
    /// Counts its writes. Each write is conditional on it.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The nonce of the decision that wrote this version.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    pub created_at: Timestamp,
    /// Digest of the request. The same id with another request is refused.
    pub fingerprint: Fingerprint,
    pub action: Action,
    pub target: Target,
    /// Whether it only counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Which records, and what the action needs.
    pub details: Payload,
    /// Its place in the due index, until its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
    /// How many pages are done.
    pub pages: u64,
    /// Where the next page begins: the store's cursor, absent at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub counts: Counts,
    /// How many records its caller has counted before; absent if nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// How many records of its last page are counted by their marks alone, because the process with that page was lost
    /// before the stop. That page is carried out again if the operation goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
    /// How many it had changed when it began to look through the records once more; zero the first time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed_before: u64,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
    /// Why, as the caller has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Box<str>>,
    /// That an operator has stopped it. It ends once the page that is under way is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// An operator's stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What became of the records of the pages that are done.
///
/// A page that a process was cut off in is carried out again: records it had already changed then count as changed, as
/// far as they still match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Records that the operation was for.
    pub matched: u64,
    /// Those that it changed.
    pub changed: u64,
    /// Those that were as wanted already, or changed after the operation was recorded.
    pub unchanged: u64,
    /// Those for which the action was refused, by the code of the error.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
}

impl Counts {
    /// Adds the counts of a page.
    pub fn add(&mut self, page: Self) {
        self.matched += page.matched;
        self.changed += page.changed;
        self.unchanged += page.unchanged;
        for (code, count) in page.refused {
            *self.refused.entry(code).or_default() += count;
        }
    }
}

/// The end of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub how: HowEnded,
    pub at: Timestamp,
    /// When the record may be deleted.
    pub expires_at: Timestamp,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HowEnded {
    /// All records were found and handled.
    Completed,
    /// An operator stopped it.
    Stopped,
    /// It can't go on.
    Failed {
        /// Why, for people.
        message: String,
    },
}

/// What a new operation is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOperation {
    pub id: OperationId,
    pub fingerprint: Fingerprint,
    pub action: Action,
    pub target: Target,
    pub dry_run: bool,
    pub details: Payload,
    /// Who asks for it.
    pub by: Option<Caller>,
}

impl Operation {
    /// A new operation. It replaces one with the same id of which the retention has passed.
    pub fn new(
        new: NewOperation,
        replaces: Option<&Self>,
        nonce: Nonce,
        now: Timestamp,
        shards: u16,
    ) -> Self {
        let NewOperation { id, fingerprint, action, target, dry_run, details, by } = new;
        let shard = shard_of_name(id.as_str(), shards);
        Self {
            format: FORMAT,
            version: replaces.map_or(0, |old| old.version) + 1,
            nonce,
            created_at: now,
            fingerprint,
            action,
            target,
            dry_run,
            details,
            due: Some(Due { at: now.plus(LOST_AFTER), kind: DueKind::Backstop, shard }),
            pages: 0,
            cursor: None,
            counts: Counts::default(),
            total: None,
            cut: None,
            changed_before: 0,
            by,
            reason: None,
            stop: None,
            end: None,
            id,
        }
    }

    pub const fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The mark in the records that its next page changes.
    pub fn by_page(&self) -> By {
        let page = PageOf { operation: self.id.clone(), number: self.pages };
        By { caller: self.by.clone(), page: Some(page), reason: self.reason.clone() }
    }

    /// Whether its next page has changed the record already: then its process was cut off.
    pub fn has_changed_task(&self, task: &Task) -> bool {
        self.is_by_page(task.by.as_deref())
    }

    /// The same of an execution, as far as its record shows.
    pub fn has_changed_execution(&self, execution: &Execution) -> bool {
        execution.journal.iter().any(|entry| self.is_by_page(entry.by()) || self.has_sent(entry))
    }

    fn is_by_page(&self, by: Option<&By>) -> bool {
        let is_page = |page: &PageOf| page.operation == self.id && page.number == self.pages;
        by.and_then(|by| by.page.as_ref()).is_some_and(is_page)
    }

    /// Whether it is the event that the operation sends. Its id is the operation's.
    fn has_sent(&self, entry: &Entry) -> bool {
        let is_own = |id: &EventId| id.as_str() == self.id.as_str();
        let Happened::Event { id: Some(id), .. } = &entry.what else { return false };
        matches!(self.action, Action::SendEvent) && is_own(id) && entry.at >= self.created_at
    }

    /// Whether its retention has passed.
    pub fn is_gone(&self, now: Timestamp) -> bool {
        self.expires_at().is_some_and(|at| at <= now)
    }

    pub fn expires_at(&self) -> Option<Timestamp> {
        self.end.as_ref().map(|end| end.expires_at)
    }

    /// The record after a page: the one that came after `pages` others. `None` if another process has noted that page.
    /// One that is stopped ends with it.
    pub fn note_page(&self, pages: u64, page: Counts, next: Option<String>, now: Timestamp) -> Option<Self> {
        if self.pages != pages {
            return None;
        }
        let mut after = Self { pages: pages + 1, cursor: next, ..self.clone() };
        let is_first_time = self.changed_before == 0;
        // Later, those that were counted before are found again, unless they have ended.
        let seen_again =
            |page: Counts| Counts { matched: page.changed, changed: page.changed, ..Counts::default() };
        after.counts.add(if is_first_time { page } else { seen_again(page) });
        if after.is_over() {
            return Some(after);
        }
        let is_last = after.cursor.is_none() && !self.looks_again();
        if after.stop.is_some() {
            return after.ended(if is_last { HowEnded::Completed } else { HowEnded::Stopped }, now);
        }
        if after.cursor.is_none() {
            if is_last || after.counts.changed == self.changed_before {
                return after.ended(HowEnded::Completed, now);
            }
            after.changed_before = after.counts.changed;
        }
        if let Some(due) = after.due.as_mut().filter(|due| due.at < now.plus(SLOT_MOVES_AT)) {
            due.at = now.plus(LOST_AFTER);
        }
        Some(after)
    }

    /// The record after a stop whose last page, after `pages` others, was lost with its process: `changed` records of that
    /// page have its mark. `None` if another process has noted that page.
    pub fn note_cut_page(&self, pages: u64, changed: u64, now: Timestamp) -> Option<Self> {
        if self.pages != pages {
            return None;
        }
        let mut after = Self { pages: pages + 1, cut: Some(changed), ..self.clone() };
        after.counts.add(Counts { matched: changed, changed, ..Counts::default() });
        after.ended(HowEnded::Stopped, now)
    }

    /// The record of an operation that goes on where it was stopped or failed; `None` if it hasn't, or has completed.
    pub fn resumed(&self, now: Timestamp, shards: u16) -> Option<Self> {
        let has_more = self.end.as_ref().is_some_and(|end| end.how != HowEnded::Completed);
        let shard = shard_of_name(self.id.as_str(), shards);
        let due = Some(Due { at: now.plus(LOST_AFTER), kind: DueKind::Backstop, shard });
        let mut after = Self { due, stop: None, end: None, cut: None, ..self.clone() };
        if let Some(changed) = self.cut {
            after.pages = after.pages.saturating_sub(1);
            after.counts.matched = after.counts.matched.saturating_sub(changed);
            after.counts.changed = after.counts.changed.saturating_sub(changed);
        }
        has_more.then_some(after)
    }

    /// Whether it looks through the records until it finds none to change. Open tasks are found by their places in the due
    /// index, and one that is claimed meanwhile moves there.
    const fn looks_again(&self) -> bool {
        let ends = matches!(self.action, Action::Cancel | Action::Terminate);
        ends && matches!(self.target, Target::Tasks) && !self.dry_run
    }

    /// The record of a process that takes over an operation whose slot is due, so that no other tick does the same.
    /// `None` if it isn't due.
    pub fn take_over(&self, now: Timestamp) -> Option<Self> {
        let due = self.due.filter(|due| due.at <= now)?;
        Some(Self { due: Some(Due { at: now.plus(LOST_AFTER), ..due }), ..self.clone() })
    }

    /// The record of an operation that a caller stops; `None` if it is over or stopped.
    pub fn stopped(&self, by: Option<Caller>, now: Timestamp) -> Option<Self> {
        let is_new = !self.is_over() && self.stop.is_none();
        is_new.then(|| Self { stop: Some(Stop { at: now, by }), ..self.clone() })
    }

    /// The record after its end; `None` if it has ended.
    pub fn ended(&self, how: HowEnded, now: Timestamp) -> Option<Self> {
        let end = End { how, at: now, expires_at: now.plus(KEPT_FOR) };
        (!self.is_over()).then(|| Self { due: None, end: Some(end), ..self.clone() })
    }
}

#[cfg(test)]
mod tests;

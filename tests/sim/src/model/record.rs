//! A task's record as part of a state: cheap to copy, compared by its whole content.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use tickover_core::task::{State, Task};

/// A record that many states share.
#[derive(Clone)]
pub struct Record(Arc<Inner>);

struct Inner {
    task: Task,
    /// A digest of the record's serialised form: a record has no `Hash` of its own, because its progress is a float.
    digest: u64,
    numbers: u64,
}

impl Record {
    pub fn new(task: Task) -> Self {
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&task).unwrap_or_default().hash(&mut hasher);
        let numbers = numbers(&task);
        Self(Arc::new(Inner { task, digest: hasher.finish(), numbers }))
    }

    /// A bit for each number that the record holds as a nonce or a lease.
    pub(super) fn numbers(&self) -> u64 {
        self.0.numbers
    }
}

fn numbers(task: &Task) -> u64 {
    let leases = task.history.iter().filter_map(|past| past.lease);
    let leases = leases.chain(task.running().map(|running| running.lease));
    let first = |bytes: &[u8]| bytes.first().copied().unwrap_or_default();
    leases
        .map(|lease| bit(first(lease.as_bytes())))
        .fold(bit(first(task.nonce.as_bytes())), |all, one| all | one)
}

/// A set with only this number.
pub(super) const fn bit(number: u8) -> u64 {
    1 << (number & 63)
}

impl Deref for Record {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.0.task
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.digest == other.0.digest && self.0.task == other.0.task)
    }
}

impl Eq for Record {}

impl PartialOrd for Record {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Record {
    /// By digest: any order will do if it is always the same.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.digest.cmp(&other.0.digest)
    }
}

impl Hash for Record {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.digest.hash(hasher);
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = &self.0.task;
        write!(f, "{} v{} n{} ", task.id, task.version, task.nonce.as_bytes()[0])?;
        match &task.state {
            State::Pending(_) => write!(f, "pending")?,
            State::Running(running) => write!(f, "running l{}", running.lease.as_bytes()[0])?,
            State::Ended(_) => write!(f, "{}", task.status())?,
        }
        if let Some(due) = task.due {
            write!(f, " due {:?} {}", due.kind, due.at.since(crate::plan::START))?;
        }
        Ok(())
    }
}

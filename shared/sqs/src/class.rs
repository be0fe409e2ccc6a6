//! Class queues: a queue may have one for its messages of high priority and one for those of low priority. They are found
//! by their names. This file owns what is remembered of them, and the form of their messages' receipts.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::lane::Turns;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Clock as _, Ids as _};
use tickover_service::system::{SystemClock, SystemIds};

/// For how long a queue that has no class queues isn't asked for them again. So its receivers notice within this time
/// that it has got some.
const ABSENT_FOR: Millis = Millis::from_secs(300);
/// The most queues that are remembered. Beyond that, all are forgotten.
const QUEUES_MAX: usize = 1_000;

/// What this process knows of class queues.
#[derive(Debug, Default)]
pub(crate) struct Classes(Mutex<BTreeMap<QueueName, Known>>);

#[derive(Debug)]
struct Known {
    /// When SQS said that there are none.
    absent_at: Option<Timestamp>,
    /// Whose turn it is when messages are received.
    turns: Turns,
}

impl Classes {
    /// Whether a queue may have class queues: SQS hasn't said otherwise lately.
    pub(crate) fn may_exist(&self, queue: &QueueName) -> bool {
        self.may_exist_at(queue, SystemClock.now())
    }

    fn may_exist_at(&self, queue: &QueueName, now: Timestamp) -> bool {
        let absent_at = self.lock().get(queue).and_then(|known| known.absent_at);
        // If the clock jumps back, what is remembered must not stay valid.
        !absent_at.is_some_and(|at| at <= now && now < at.plus(ABSENT_FOR))
    }

    /// Notes that SQS has no class queue of this queue.
    pub(crate) fn note_absent(&self, queue: &QueueName) {
        self.note_absent_at(queue, SystemClock.now());
    }

    fn note_absent_at(&self, queue: &QueueName, now: Timestamp) {
        self.with(queue, |known| known.absent_at = Some(now));
    }

    /// In which order to ask for so many messages.
    pub(crate) fn asks(&self, queue: &QueueName, count: usize) -> [(Priority, u32); 5] {
        self.with(queue, |known| known.turns.asks(u32::try_from(count).unwrap_or(u32::MAX)))
    }

    /// Notes how many messages a class gave when it was asked.
    pub(crate) fn note_given(&self, queue: &QueueName, class: Priority, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.with(queue, |known| match count {
            0 => known.turns.found_none(class),
            // Those that weren't asked may wait as well.
            _ => known.turns.took(class, count, [true; 3]),
        });
    }

    fn with<T>(&self, queue: &QueueName, change: impl FnOnce(&mut Known) -> T) -> T {
        let mut known = self.lock();
        if known.len() >= QUEUES_MAX && !known.contains_key(queue) {
            known.clear();
        }
        change(known.entry(queue.clone()).or_insert_with(Known::new))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<QueueName, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn new() -> Self {
        let mut random = [0; 4];
        SystemIds.fill(&mut random);
        Self { absent_at: None, turns: Turns::begun(u32::from_le_bytes(random)) }
    }
}

/// The receipt of a message that was received from a class queue: it says which one. Receipts of normal messages are as
/// SQS gives them.
pub fn receipt_of(class: Priority, receipt: String) -> String {
    match class {
        Priority::High | Priority::Low => format!("{class}:{receipt}"),
        Priority::Normal => receipt,
    }
}

/// The class and SQS's receipt. SQS's own receipts have no colon.
pub fn split_receipt(receipt: &str) -> (Priority, &str) {
    let of = |class: Priority| {
        let rest = receipt.strip_prefix(class.as_str())?.strip_prefix(':')?;
        Some((class, rest))
    };
    of(Priority::High).or_else(|| of(Priority::Low)).unwrap_or((Priority::Normal, receipt))
}

/// The receipts of each class, as SQS gave them.
pub(crate) fn by_class(receipts: &[String]) -> [(Priority, Vec<String>); 3] {
    Priority::ALL.map(|class| {
        let of_class = receipts.iter().map(|receipt| split_receipt(receipt)).filter(|(of, _)| *of == class);
        (class, of_class.map(|(_, receipt)| receipt.to_owned()).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_says_its_class_and_one_without_a_class_is_of_a_normal_message() {
        for class in Priority::ALL {
            assert_eq!(split_receipt(&receipt_of(class, "AQEB/x+=".to_owned())), (class, "AQEB/x+="));
        }
        assert_eq!(receipt_of(Priority::Normal, "r".to_owned()), "r");
        for old in ["highAQEB", "low", "normal:r", "a:b"] {
            assert_eq!(split_receipt(old), (Priority::Normal, old));
        }
        let receipts = ["a", "low:b", "high:c", "low:d"].map(str::to_owned);
        let [high, normal, low] = by_class(&receipts).map(|(_, receipts)| receipts.join(","));
        assert_eq!([high, normal, low], ["c", "a", "b,d"]);
    }

    #[test]
    fn an_absence_is_remembered_for_five_minutes_and_not_beyond_a_jump_of_the_clock() {
        let (classes, queue) = (Classes::default(), QueueName::parse("work").unwrap());
        let at = |s: i64| Timestamp::from_millis(1_000_000 + s * 1_000);
        assert!(classes.may_exist_at(&queue, at(0)));
        classes.note_absent_at(&queue, at(0));
        for (s, may_exist) in [(0, false), (299, false), (300, true), (-1, true)] {
            assert_eq!(classes.may_exist_at(&queue, at(s)), may_exist, "{s} s");
        }
        assert!(classes.may_exist_at(&QueueName::parse("other").unwrap(), at(0)));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let classes = Classes::default();
        for n in 0..=QUEUES_MAX {
            classes.note_absent(&QueueName::parse(n.to_string()).unwrap());
        }
        assert_eq!(classes.lock().len(), 1);
    }
}

//! Builds and parses every key of the table.

use std::fmt::Display;

use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::execution::journal::SegmentKey;
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::{Waiter, line};
use tickover_core::id::{
    BlobId, CronId, ExecutionId, Fingerprint, GateId, Incarnation, Nonce, OperationId, QueueName, RecordId,
    TaskId,
};

use crate::attribute::{PK, SK};
use crate::item::Item;

const TASK: &str = "task";
const EXECUTION: &str = "exec";
const SEGMENT: &str = "seg";
const JOIN: &str = "join";
const BLOB: &str = "blob";
const QUEUE: &str = "queue";
const KEY: &str = "key";
const TICK: &str = "tick";
/// All ticks share one record.
const ALL_TICKS: &str = "all";
const CRON: &str = "cron";
const OPERATION: &str = "op";
const GATE: &str = "gate";

pub(crate) const TASK_SK: &str = TASK;

/// An item's primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Key {
    pub(crate) fn of(record: &RecordId) -> Self {
        match record {
            RecordId::Task(id) => Self::named(TASK, id),
            RecordId::Execution(id) => Self::execution(id),
            RecordId::Cron(id) => Self::named(CRON, id),
            RecordId::Queue(name) => Self::named(QUEUE, name),
            RecordId::Operation(id) => Self::named(OPERATION, id),
            RecordId::Gate(id) => Self::named(GATE, id),
            RecordId::Tick => Self::named(TICK, ALL_TICKS),
            RecordId::Key(digest) => Self::named(KEY, digest),
        }
    }

    pub(crate) fn execution(id: &ExecutionId) -> Self {
        Self::named(EXECUTION, id)
    }

    /// A segment has the partition key of its execution's record. The numbers are padded, so that the order of the keys
    /// is that of the journal.
    pub(crate) fn segment(id: &ExecutionId, key: &SegmentKey) -> Self {
        let SegmentKey { incarnation, run, number, mark } = key;
        let run = segments_of_run(*incarnation, *run);
        Self { sk: format!("{run}{number:06}#{mark}"), ..Self::execution(id) }
    }

    /// The item of up to 100 slots of a fan-out in a run of an execution. Each item has its own partition key: one key
    /// takes 1,000 writes a second, and all steps of a large fan-out may end within one second.
    pub(crate) fn join(parent: &Parent, slot: Slot) -> Self {
        let (Parent { execution, incarnation, run, .. }, Slot { label, item, .. }) = (parent, slot);
        Self { pk: format!("{JOIN}#{execution}#{incarnation}#{run}#{label}#{item}"), sk: JOIN.to_owned() }
    }

    pub(crate) fn blob(id: &BlobId) -> Self {
        Self::named(BLOB, id)
    }

    /// Those that wait share a few partitions. There, those of a key lie together, in the order of their line.
    pub(crate) fn in_line(gate: &GateId, key: &str) -> Self {
        Self { pk: format!("{GATE}#line#{}", line::part_of(gate)), sk: format!("{gate}#{key}") }
    }

    /// The key of one that waits.
    pub(crate) fn waiter(gate: &GateId, waiter: &Waiter) -> Self {
        Self { sk: format!("{gate}#{}", waiter.sort_key()), ..Self::in_line(gate, "") }
    }

    fn named(what: &str, id: impl Display) -> Self {
        Self { pk: format!("{what}#{id}"), sk: what.to_owned() }
    }

    pub(crate) fn attributes(self) -> Item {
        Item::from([(PK.to_owned(), AttributeValue::S(self.pk)), (SK.to_owned(), AttributeValue::S(self.sk))])
    }
}

/// The id in a record's partition key, which an execution's segments share; `None` if it is no record's.
pub(crate) fn record_id(pk: &str) -> Option<RecordId> {
    let (what, id) = pk.split_once('#')?;
    match what {
        TASK => TaskId::parse(id).ok().map(RecordId::Task),
        EXECUTION => ExecutionId::parse(id).ok().map(RecordId::Execution),
        CRON => CronId::parse(id).ok().map(RecordId::Cron),
        QUEUE => QueueName::parse(id).ok().map(RecordId::Queue),
        OPERATION => OperationId::parse(id).ok().map(RecordId::Operation),
        GATE => GateId::parse(id).ok().map(RecordId::Gate),
        TICK => (id == ALL_TICKS).then_some(RecordId::Tick),
        KEY => Fingerprint::try_from(id.to_owned()).ok().map(RecordId::Key),
        _ => None,
    }
}

/// The prefix of the sort keys of an incarnation's segments.
pub(crate) fn segments_of(incarnation: Incarnation) -> String {
    format!("{SEGMENT}#{incarnation}#")
}

/// The prefix of the sort keys of a run's segments.
pub(crate) fn segments_of_run(incarnation: Incarnation, run: u32) -> String {
    format!("{}{run:08}#", segments_of(incarnation))
}

/// The range of the sort keys of a run's segments with numbers above this one. It ends with the character after the
/// separator.
pub(crate) fn segments_range(incarnation: Incarnation, run: u32, after: u32) -> (String, String) {
    let run_of = segments_of_run(incarnation, run);
    let until = format!("{}$", run_of.trim_end_matches('#'));
    (format!("{run_of}{:06}#", after.saturating_add(1)), until)
}

/// The number and the nonce in a segment's sort key of that run; `None` if it is another record's key.
pub(crate) fn segment_key(sk: &str, incarnation: Incarnation, run: u32) -> Option<SegmentKey> {
    let rest = sk.strip_prefix(&segments_of_run(incarnation, run))?;
    let (number, mark) = rest.split_once('#')?;
    let (number, mark) = (number.parse().ok()?, Nonce::try_from(mark.to_owned()).ok()?);
    Some(SegmentKey { incarnation, run, number, mark })
}

/// The partition of a part of all lines.
pub(crate) fn line_pk(part: u8) -> String {
    format!("{GATE}#line#{part}")
}

/// The range of the sort keys of a line from behind this key on. It ends with the character after the separator.
pub(crate) fn line_range(gate: &GateId, after: &str) -> (String, String) {
    (format!("{gate}#{after}"), format!("{gate}$"))
}

/// The key in whose line this sort key is.
pub(crate) fn line_gate(sk: &str) -> Option<GateId> {
    GateId::parse(sk.split('#').next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_the_record_and_are_read_back() {
        let id = TaskId::parse("a:b").unwrap();
        let digest = Fingerprint::from_bytes([0; 16]);
        let zeros = "AAAAAAAAAAAAAAAAAAAAAA";
        for (id, pk, sk) in [
            (RecordId::Task(id), "task#a:b".to_owned(), "task"),
            (RecordId::Execution(ExecutionId::parse("e").unwrap()), "exec#e".to_owned(), "exec"),
            (RecordId::Cron(CronId::parse("c").unwrap()), "cron#c".to_owned(), "cron"),
            (RecordId::Queue(QueueName::parse("mail").unwrap()), "queue#mail".to_owned(), "queue"),
            (RecordId::Operation(OperationId::parse("o").unwrap()), "op#o".to_owned(), "op"),
            (RecordId::Gate(GateId::from(&digest)), format!("gate#{zeros}"), "gate"),
            (RecordId::Tick, "tick#all".to_owned(), "tick"),
            (RecordId::Key(digest), format!("key#{zeros}"), "key"),
        ] {
            assert_eq!(record_id(&pk), Some(id.clone()));
            assert_eq!(Key::of(&id), Key { pk, sk: sk.into() });
        }
        assert_eq!(Key::blob(&BlobId::from_bytes([0; 16])).pk, format!("blob#{zeros}"));
    }

    #[test]
    fn another_items_key_is_no_records() {
        for pk in
            ["queue", "task", "task#", "tasks#a", "task#a b", "exec", "exec#", "join#a", "tick#one", "key#a"]
        {
            assert_eq!(record_id(pk), None, "{pk}");
        }
    }

    #[test]
    fn those_who_wait_lie_in_few_partitions_and_those_of_a_gate_together() {
        let of = |number| GateId::from(&Fingerprint::from_bytes([number; 16]));
        let gate = of(0);
        let key = Key::in_line(&gate, "mail#1");
        assert_eq!(key.pk, format!("gate#line#{}", line::part_of(&gate)));
        assert_eq!(key.sk, "AAAAAAAAAAAAAAAAAAAAAA#mail#1");
        assert_eq!(line_gate(&key.sk), Some(gate.clone()));
        for (number, other) in [(1, "mail#1"), (0, "0"), (0, "zz~"), (255, "")] {
            let found = Key::in_line(&of(number), other);
            let is_of_line = Key::in_line(&gate, "").sk <= found.sk && found.sk < line_range(&gate, "").1;
            assert_eq!(is_of_line, number == 0, "{found:?}");
        }
        // The partition of a line is no key's.
        for part in 0..line::PARTS {
            assert_eq!(record_id(&line_pk(part)), None);
        }
        for sk in ["", "#mail", "a b#mail"] {
            assert_eq!(line_gate(sk), None, "{sk}");
        }
    }

    #[test]
    fn segments_lie_behind_their_record_in_the_order_of_their_numbers() {
        let id = ExecutionId::parse("order:7").unwrap();
        let (incarnation, mark) = (Incarnation::from_bytes([1; 8]), Nonce::from_bytes([2; 8]));
        let of = |run, number| SegmentKey { incarnation, run, number, mark };
        let keys = [of(1, 1), of(1, 9), of(1, 10), of(2, 1), of(12, 1)].map(|key| Key::segment(&id, &key));
        assert_eq!(
            keys[0],
            Key { pk: "exec#order:7".into(), sk: "seg#AQEBAQEBAQE#00000001#000001#AgICAgICAgI".into() }
        );
        assert!(keys.is_sorted_by_key(|key| &key.sk) && Key::execution(&id).sk < keys[0].sk);
        assert_eq!(record_id(&keys[0].pk), Some(id.into()));
        assert_eq!(segment_key(&keys[2].sk, incarnation, 1), Some(of(1, 10)));
        for sk in
            ["exec", &keys[3].sk, "seg#AQEBAQEBAQE#00000001#000001", "seg#AQEBAQEBAQE#00000001##AgICAgICAgI"]
        {
            assert_eq!(segment_key(sk, incarnation, 1), None, "{sk}");
        }
    }

    #[test]
    fn a_join_item_is_one_runs_and_one_labels() {
        let parent = Parent {
            execution: ExecutionId::parse("e").unwrap(),
            incarnation: Incarnation::from_bytes([1; 8]),
            run: 3,
            again: 0,
            slot: None,
            step: None,
            work: None,
            on_close: tickover_core::execution::ParentClosePolicy::default(),
        };
        let slot = Slot { label: Nonce::from_bytes([2; 8]), item: 4, place: 5, of: 6 };
        let key = Key { pk: "join#e#AQEBAQEBAQE#3#AgICAgICAgI#4".into(), sk: "join".into() };
        assert_eq!(Key::join(&parent, slot), key);
    }
}

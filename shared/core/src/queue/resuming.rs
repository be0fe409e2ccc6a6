//! The walks that send the hints of parked records after a queue was resumed, one walk over each shard of the due
//! index. The queue's record lists the walks that aren't done, and has a due slot while there are any. So the tick
//! finds a walk whose message was lost, and a queue without walks costs the tick nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::due::{Due, DueKind, shard_of_name};
use crate::duration::Millis;
use crate::queue::QueueRecord;
use crate::time::{SKEW_MAX, Timestamp};

/// A walk that has noted no progress for this long counts as lost. One message continues for a minute, and starts
/// ten seconds after the resuming.
pub const LOST_AFTER: Millis = Millis::from_secs(120);

/// The walks of one resuming that aren't done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resuming {
    /// When the queue was resumed. Walks of an earlier resuming stop.
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// By shard. The walk over a shard that isn't in the map is done.
    #[serde(rename = "w")]
    pub walks: BTreeMap<u16, Walk>,
    /// The due slot of the queue's record.
    #[serde(rename = "d")]
    pub due: Due,
}

/// A walk over one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// When its message was sent, or when it last noted its progress.
    #[serde(rename = "h")]
    pub noted_at: Timestamp,
    /// The instant in the due index up to which it is done; the beginning if absent.
    #[serde(default, rename = "f", skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
}

impl QueueRecord {
    /// The record of the paused queue; `None` if it is paused already. Parked records stay parked: the next resuming
    /// starts new walks.
    pub fn pause(&self) -> Option<Self> {
        (!self.paused).then(|| Self { paused: true, resuming: None, ..self.clone() })
    }

    /// The record of the resumed queue. If records may be parked, it lists one walk over each of the `shards`.
    /// `None` if the queue is resumed already.
    pub fn resume(&self, now: Timestamp, shards: u16) -> Option<Self> {
        let lacks_walks = self.parked && self.resuming.is_none();
        if !self.paused && !lacks_walks {
            return None;
        }
        let shard = shard_of_name(self.name.as_str(), shards);
        let due = Due { at: now.plus(LOST_AFTER), kind: DueKind::Backstop, shard };
        let walk = Walk { noted_at: now, from: None };
        let walks = (0..shards.max(1)).map(|shard| (shard, walk)).collect();
        let resuming = self.parked.then_some(Resuming { since: now, walks, due });
        Some(Self { paused: false, resuming, ..self.clone() })
    }

    /// The record in which lost walks start again now, from their last noted progress; `None` if the record isn't
    /// due.
    pub fn restart_walks(&self, now: Timestamp) -> Option<Self> {
        let mut resuming = self.resuming.clone().filter(|resuming| resuming.due.at <= now)?;
        for walk in resuming.walks.values_mut() {
            // An instant far ahead is from a clock that has since jumped back.
            if walk.noted_at > now.plus(SKEW_MAX) || walk.noted_at.plus(LOST_AFTER) <= now {
                walk.noted_at = now;
            }
        }
        let first = resuming.walks.values().map(|walk| walk.noted_at).min().unwrap_or(now);
        resuming.due.at = first.plus(LOST_AFTER);
        Some(Self { resuming: Some(resuming), ..self.clone() })
    }

    /// The noted progress of a walk of this resuming; `None` if the walk is done.
    pub fn walk(&self, since: Timestamp, shard: u16) -> Option<&Walk> {
        let resuming = self.resuming.as_ref().filter(|resuming| resuming.since == since)?;
        resuming.walks.get(&shard)
    }

    /// The record in which a walk has noted this progress.
    pub fn note_walk(
        &self,
        since: Timestamp,
        shard: u16,
        from: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        let walk = *self.walk(since, shard)?;
        let mut after = self.clone();
        let walks = &mut after.resuming.as_mut()?.walks;
        walks.insert(shard, Walk { noted_at: now.max(walk.noted_at), from: from.max(walk.from) });
        Some(after)
    }

    /// The record in which a walk is done. After the last walk no record is parked any more.
    pub fn finish_walk(&self, since: Timestamp, shard: u16) -> Option<Self> {
        self.walk(since, shard)?;
        let mut after = self.clone();
        let walks = &mut after.resuming.as_mut()?.walks;
        walks.remove(&shard);
        if walks.is_empty() {
            after.parked = false;
            after.resuming = None;
        }
        Some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Nonce, QueueName};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn parked() -> QueueRecord {
        let name = QueueName::parse("mail").unwrap();
        let blank = QueueRecord::new(name, Nonce::from_bytes([0; Nonce::LEN]));
        QueueRecord { parked: true, ..blank.pause().unwrap() }
    }

    fn due_at(record: &QueueRecord) -> Option<Timestamp> {
        record.due().map(|due| due.at)
    }

    #[test]
    fn a_resumed_queue_has_a_walk_over_each_shard_until_all_are_done() {
        let record = parked().resume(at(0), 2).unwrap();
        assert_eq!((record.paused, record.parked, due_at(&record)), (false, true, Some(at(120))));
        assert_eq!(record.resume(at(1), 2), None, "once");
        let record = record.finish_walk(at(0), 1).unwrap();
        assert_eq!(record.finish_walk(at(0), 1), None, "a repeated message");
        assert!(record.parked && record.walk(at(0), 0).is_some());
        let record = record.finish_walk(at(0), 0).unwrap();
        assert_eq!((record.parked, record.resuming), (false, None));
    }

    #[test]
    fn a_queue_without_parked_records_has_no_walks() {
        let record = QueueRecord { parked: false, ..parked() }.resume(at(0), 2).unwrap();
        assert_eq!((record.resuming.as_ref(), due_at(&record)), (None, None));
        assert_eq!(record.restart_walks(at(9_000)), None);
    }

    #[test]
    fn walks_of_an_earlier_resuming_are_ignored() {
        let record = parked().resume(at(0), 2).unwrap();
        let paused = record.pause().unwrap();
        assert_eq!((paused.parked, due_at(&paused)), (true, None));
        let again = paused.resume(at(60), 2).unwrap();
        assert_eq!((again.finish_walk(at(0), 1), again.walk(at(0), 1)), (None, None));
        assert!(again.walk(at(60), 1).is_some());
    }

    #[test]
    fn only_a_walk_without_progress_for_two_minutes_starts_again_from_its_last_position() {
        let record = parked().resume(at(0), 3).unwrap().finish_walk(at(0), 2).unwrap();
        let record = record.note_walk(at(0), 1, Some(at(7)), at(70)).unwrap();
        assert_eq!(record.restart_walks(at(119)), None);
        let record = record.restart_walks(at(130)).unwrap();
        let walk = |shard| record.walk(at(0), shard).map(|walk| (walk.noted_at, walk.from));
        assert_eq!((walk(0), walk(1)), (Some((at(130), None)), Some((at(70), Some(at(7))))));
        assert_eq!((walk(2), due_at(&record)), (None, Some(at(190))));
        let record = record.restart_walks(at(200)).unwrap();
        assert_eq!(record.walk(at(0), 1), Some(&Walk { noted_at: at(200), from: Some(at(7)) }));
    }

    #[test]
    fn a_walk_noted_by_a_clock_that_is_a_little_ahead_is_not_lost() {
        let record = parked().resume(at(0), 1).unwrap();
        let ahead = record.note_walk(at(0), 0, None, at(180)).unwrap().restart_walks(at(120)).unwrap();
        assert_eq!(ahead.walk(at(0), 0).map(|walk| walk.noted_at), Some(at(180)));
        let jumped = record.note_walk(at(0), 0, None, at(9_000)).unwrap().restart_walks(at(120)).unwrap();
        assert_eq!(jumped.walk(at(0), 0).map(|walk| walk.noted_at), Some(at(120)));
    }

    #[test]
    fn a_walk_never_goes_back() {
        let record = parked().resume(at(0), 1).unwrap();
        let record = record.note_walk(at(0), 0, Some(at(7)), at(70)).unwrap();
        let record = record.note_walk(at(0), 0, Some(at(3)), at(60)).unwrap();
        assert_eq!(record.walk(at(0), 0), Some(&Walk { noted_at: at(70), from: Some(at(7)) }));
    }

    #[test]
    fn the_record_with_the_most_shards_is_far_below_the_item_limit() {
        let now = Timestamp::from_millis(1_767_225_600_000);
        let mut record = parked().resume(now, 1_000).unwrap();
        for shard in 0..1_000 {
            record = record.note_walk(now, shard, Some(now), now).unwrap();
        }
        let bytes = serde_json::to_string(&record).unwrap().len();
        assert!(bytes < 48 * 1_024, "{bytes}");
    }
}

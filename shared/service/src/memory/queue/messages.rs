//! The messages of one queue, and when each is visible. The time is an argument; nothing here waits.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde::de::IgnoredAny;
use tickover_core::duration::Millis;
use tickover_core::id::Incarnation;
use tickover_core::lane::Lane;
use tickover_core::time::Timestamp;

use super::visible::Visible;
use crate::ports::Depth;

/// A message's position: the older ones come first.
pub(super) type Position = (Timestamp, MessageId);

/// A message's number, for as long as the message exists.
pub(super) type MessageId = u64;

/// One delivery of a message: a later delivery makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) id: MessageId,
    /// How often the message had been received by then.
    pub(super) receives: u32,
}

/// The delivery is no longer valid for this call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stale;

/// How SQS removes or limits messages. A queue in memory does this only when it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageLimits {
    /// How long a message is kept in total: at most 14 days in SQS.
    pub retention: Option<Millis>,
    /// How often a message is received before it becomes a dead letter.
    pub receives_max: Option<u32>,
    /// How long a received message can be hidden in total: 12 hours in SQS.
    pub hidden_max: Option<Millis>,
    /// How many messages of a queue can be in flight: 120,000 in SQS.
    pub in_flight_max: Option<usize>,
}

/// The record of a hint, and its version. A turn's hint has none: 0.
#[derive(Clone, Copy, Debug)]
struct Hinted {
    incarnation: Incarnation,
    version: u64,
    /// When the attempt was claimed whose worker was lost.
    claimed_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Message {
    body: String,
    lane: Lane,
    hint_of: Option<Hinted>,
    sent_at: Timestamp,
    received_at: Timestamp,
    visible_at: Timestamp,
    /// Its place by time among the visible ones.
    since: Timestamp,
    receives: u32,
}

/// All messages of a queue. Each is in exactly one of `visible` and `hidden`. Every operation first moves messages
/// whose instant has come, so that the rest never compares with the clock.
#[derive(Debug, Default)]
pub(super) struct Messages {
    by_id: HashMap<MessageId, Message>,
    visible: Visible,
    hidden: BTreeSet<Position>,
    /// How many of the hidden messages have been received.
    in_flight: u64,
    mortality: MessageLimits,
    dead: Vec<(String, Lane)>,
    /// The messages that are hints of a record.
    hints: HashMap<Incarnation, Vec<MessageId>>,
}

impl Messages {
    /// An empty queue with these limits.
    pub(super) fn mortal(mortality: MessageLimits) -> Self {
        Self { mortality, ..Self::default() }
    }

    /// Adds a message that may be received from an instant on. Its place is by that instant, or by the claim of a worker
    /// that was lost: it goes on before what has come since.
    pub(super) fn push(
        &mut self,
        now: Timestamp,
        id: MessageId,
        (body, lane): (String, Lane),
        since: Timestamp,
    ) {
        let hint_of = hinted(&body);
        if let Some(Hinted { incarnation, .. }) = hint_of {
            self.hints.entry(incarnation).or_default().push(id);
        }
        let visible_at = since.max(now);
        let since = hint_of.and_then(|of| of.claimed_at).map_or(since, |claimed| claimed.min(since));
        let message =
            Message { body, lane, hint_of, sent_at: now, received_at: now, visible_at, since, receives: 0 };
        self.by_id.insert(id, message);
        self.hidden.insert((visible_at, id));
    }

    pub(super) fn take(&mut self, now: Timestamp, max: usize, until: Timestamp) -> Vec<(Delivery, String)> {
        self.move_due(now);
        let in_flight = usize::try_from(self.in_flight).unwrap_or(usize::MAX);
        let free = self.mortality.in_flight_max.map_or(max, |most| most.saturating_sub(in_flight));
        let max = max.min(free);
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some((_, id)) = self.visible.pop()
        {
            let receives = self.by_id.get(&id).map(|message| message.receives);
            if receives.zip(self.mortality.receives_max).is_some_and(|(count, most)| count >= most) {
                let dead = self.take_out(id);
                self.dead.extend(dead.map(|message| (message.body, message.lane)));
                continue;
            }
            let Some(message) = self.by_id.get_mut(&id) else { continue };
            message.received_at = now;
            message.receives = message.receives.saturating_add(1);
            message.visible_at = until;
            taken.push((Delivery { id, receives: message.receives }, message.body.clone()));
            self.hidden.insert((until, id));
            self.in_flight += 1;
        }
        taken
    }

    /// Whether a hint of this version of a record is here, in flight or not.
    pub(super) fn has_hint_of(&self, incarnation: Incarnation, version: u64) -> bool {
        let is_of_version = |id: &MessageId| {
            self.by_id.get(id).and_then(|message| message.hint_of).is_some_and(|of| of.version == version)
        };
        self.hints.get(&incarnation).is_some_and(|ids| ids.iter().any(is_of_version))
    }

    /// Removes a message by its latest delivery, even if it is visible again. With an older delivery, it stays.
    pub(super) fn remove(&mut self, now: Timestamp, delivery: Delivery) {
        self.move_due(now);
        if self.place(delivery).is_some() {
            self.drop_message(delivery.id);
        }
    }

    /// Removes the hints of a record.
    pub(super) fn forget(&mut self, now: Timestamp, incarnation: Incarnation) {
        self.move_due(now);
        for id in self.hints.get(&incarnation).cloned().unwrap_or_default() {
            self.drop_message(id);
        }
    }

    fn take_out(&mut self, id: MessageId) -> Option<Message> {
        let message = self.by_id.remove(&id)?;
        if let Some(Entry::Occupied(mut hints)) = message.hint_of.map(|of| self.hints.entry(of.incarnation)) {
            hints.get_mut().retain(|known| *known != id);
            if hints.get().is_empty() {
                hints.remove();
            }
        }
        Some(message)
    }

    fn drop_message(&mut self, id: MessageId) {
        let Some(message) = self.take_out(id) else { return };
        if self.hidden.remove(&(message.visible_at, id)) {
            self.in_flight -= u64::from(message.receives > 0);
        } else {
            self.visible.remove(message.lane, (message.since, id));
        }
    }

    /// Hides a received message until an instant. Who shortens its time gives it back: it comes after all others then.
    /// Otherwise it keeps its place, in case its receiver is lost.
    pub(super) fn hide(&mut self, now: Timestamp, delivery: Delivery, until: Timestamp) -> Result<(), Stale> {
        self.move_due(now);
        let place = self.place(delivery).ok_or(Stale)?;
        let received_at = self.by_id.get(&delivery.id).map(|message| message.received_at);
        let longest = received_at.zip(self.mortality.hidden_max).map(|(at, span)| at.plus(span));
        if longest.is_some_and(|longest| until > longest) {
            return Err(Stale);
        }
        // A message that is visible again isn't in flight, so its former receiver can't hide it.
        if !self.hidden.remove(&place) {
            return Err(Stale);
        }
        self.hidden.insert((until, delivery.id));
        self.by_id.entry(delivery.id).and_modify(|message| {
            if until < message.visible_at {
                message.since = until;
            }
            message.visible_at = until;
        });
        Ok(())
    }

    /// When the next hidden message is visible.
    pub(super) fn next_visible_at(&self) -> Option<Timestamp> {
        self.hidden.first().map(|(instant, _)| *instant)
    }

    /// Removes and returns the dead letters.
    pub(super) fn take_dead(&mut self) -> Vec<(String, Lane)> {
        std::mem::take(&mut self.dead)
    }

    pub(super) fn depth(&mut self, now: Timestamp) -> Depth {
        self.move_due(now);
        let hidden = count(&self.hidden);
        Depth {
            visible: self.visible.len(),
            in_flight: self.in_flight,
            delayed: hidden.saturating_sub(self.in_flight),
        }
    }

    /// What may be received, at the instant of the last operation.
    pub(super) const fn visible(&self) -> &Visible {
        &self.visible
    }

    fn move_due(&mut self, now: Timestamp) {
        self.delete_old(now);
        while let Some(place) = self.hidden.first().copied().filter(|(instant, _)| *instant <= now) {
            self.hidden.remove(&place);
            let Some(message) = self.by_id.get(&place.1) else { continue };
            self.visible.insert(message.lane, (message.since, place.1));
            if message.receives > 0 {
                self.in_flight -= 1;
            }
        }
    }

    /// Deletes messages that are too old.
    fn delete_old(&mut self, now: Timestamp) {
        let Some(retention) = self.mortality.retention else { return };
        let is_old = |message: &Message| message.sent_at.plus(retention) <= now;
        let old: Vec<_> =
            self.by_id.iter().filter(|(_, message)| is_old(message)).map(|(id, _)| *id).collect();
        for id in old {
            self.drop_message(id);
        }
    }

    /// A message's position, unless it was deleted or received again since. A message that was never received has no
    /// delivery, whatever an invented receipt says.
    fn place(&self, delivery: Delivery) -> Option<Position> {
        let message = self.by_id.get(&delivery.id)?;
        let is_latest = delivery.receives > 0 && message.receives == delivery.receives;
        is_latest.then_some((message.visible_at, delivery.id))
    }
}

/// What is read of a hint's body.
#[derive(Deserialize)]
struct Hint {
    task: Option<Named>,
    turn: Option<Named>,
}

/// Its record, and what carries it.
#[derive(Deserialize)]
struct Named {
    inc: Incarnation,
    #[serde(default)]
    ver: u64,
    prk: Option<IgnoredAny>,
    st: Option<State>,
}

/// The state of a task. It is of a running one if its worker was lost.
#[derive(Deserialize)]
struct State {
    r: Option<Running>,
}

#[derive(Deserialize)]
struct Running {
    c: Timestamp,
}

/// What a hint is of.
fn hinted(body: &str) -> Option<Hinted> {
    let Hint { task, turn } = serde_json::from_str(body).ok()?;
    let Named { inc: incarnation, ver: version, st, .. } = task.or(turn)?;
    let claimed_at = st.and_then(|state| state.r).map(|running| running.c);
    Some(Hinted { incarnation, version, claimed_at })
}

/// Whether a message is the hint of a task that the store counts as pending with a hint. It doesn't if the task waits in a
/// line and was offered a place, or if its worker was lost.
pub(super) fn is_in_backlog(body: &str) -> bool {
    let is_pending = |task: Named| task.prk.is_none() && task.st.is_none_or(|state| state.r.is_none());
    serde_json::from_str::<Hint>(body).is_ok_and(|hint| hint.task.is_some_and(is_pending))
}

fn count(places: &BTreeSet<Position>) -> u64 {
    u64::try_from(places.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn depth(visible: u64, in_flight: u64, delayed: u64) -> Depth {
        Depth { visible, in_flight, delayed }
    }

    #[test]
    fn messages_come_in_the_order_in_which_they_became_visible() {
        let mut queue = Messages::default();
        queue.push(at(0), 1, ("delayed".into(), Lane::default()), at(50));
        queue.push(at(0), 2, ("first".into(), Lane::default()), at(0));
        queue.push(at(0), 3, ("second".into(), Lane::default()), at(0));
        let bodies =
            |taken: Vec<(Delivery, String)>| taken.into_iter().map(|(_, body)| body).collect::<Vec<_>>();
        assert_eq!(bodies(queue.take(at(0), 1, at(60))), ["first"]);
        // Its receiver was lost, so it keeps its place.
        assert_eq!(bodies(queue.take(at(100), 10, at(200))), ["first", "second", "delayed"]);
    }

    #[test]
    fn what_is_given_back_comes_after_the_others_and_what_is_lost_before_them() {
        let mut queue = Messages::default();
        for id in 0..4 {
            queue.push(at(0), id, (format!("{id}"), Lane::default()), at(0));
        }
        let taken = queue.take(at(0), 2, at(60));
        queue.hide(at(50), taken[0].0, at(90)).unwrap();
        queue.hide(at(50), taken[1].0, at(55)).unwrap();
        let next = queue.take(at(90), 10, at(200));
        assert_eq!(next.iter().map(|(_, body)| body.as_str()).collect::<Vec<_>>(), ["0", "2", "3", "1"]);
        queue.remove(at(95), next[0].0);
        assert_eq!(queue.depth(at(200)), depth(3, 0, 0));
    }

    #[test]
    fn the_hint_of_a_task_whose_worker_was_lost_comes_before_what_has_come_since_its_claim() {
        let running = |claimed: i64| serde_json::json!({"v": 1, "task": {"inc": Incarnation::from_bytes([7; 8]), "st": {"r": {"c": at(claimed)}}}});
        let mut queue = Messages::default();
        for id in [10, 20, 40] {
            let since = at(i64::try_from(id).unwrap());
            queue.push(since, id, (format!("{id}"), Lane::default()), since);
        }
        let body = running(30).to_string();
        assert!(!is_in_backlog(&body), "the store doesn't count it as pending");
        queue.push(at(90), 1, (body.clone(), Lane::default()), at(90));
        let order: Vec<_> = queue.take(at(90), 10, at(200)).into_iter().map(|(_, body)| body).collect();
        assert_eq!(order, ["10".to_owned(), "20".to_owned(), body, "40".to_owned()]);
    }

    #[test]
    fn depth_follows_every_change_of_state() {
        let mut queue = Messages::default();
        queue.push(at(0), 1, ("a".into(), Lane::default()), at(0));
        queue.push(at(0), 2, ("b".into(), Lane::default()), at(0));
        queue.push(at(0), 3, ("c".into(), Lane::default()), at(10));
        assert_eq!(queue.depth(at(0)), depth(2, 0, 1));
        let taken = queue.take(at(0), 10, at(5));
        assert_eq!(queue.depth(at(0)), depth(0, 2, 1));
        queue.remove(at(0), taken[0].0);
        queue.remove(at(0), taken[0].0);
        assert_eq!(queue.depth(at(0)), depth(0, 1, 1));
        assert_eq!(queue.depth(at(5)), depth(1, 0, 1));
        queue.remove(at(5), taken[1].0);
        assert_eq!(queue.depth(at(5)), depth(0, 0, 1));
        assert_eq!(queue.depth(at(10)), depth(1, 0, 0));
        assert_eq!(queue.next_visible_at(), None);
    }

    #[test]
    fn the_hints_of_a_record_are_removed_in_any_state_and_no_longer_counted() {
        let of = |number: u8| Incarnation::from_bytes([number; 8]);
        let hint = |number| serde_json::json!({"v": 1, "task": {"id": "t", "inc": of(number)}}).to_string();
        let mut queue = Messages::default();
        for (id, number, visible_at) in [(1, 1, 0), (2, 1, 0), (3, 1, 90), (4, 2, 1)] {
            queue.push(at(0), id, (hint(number), Lane::default()), at(visible_at));
        }
        queue.push(
            at(0),
            5,
            (serde_json::json!({"v": 1, "turn": {"id": "e", "inc": of(3)}}).to_string(), Lane::default()),
            at(1),
        );
        let held = queue.take(at(0), 1, at(60)).remove(0).0;
        assert_eq!(queue.depth(at(0)), depth(1, 1, 3));
        queue.forget(at(0), of(1));
        assert_eq!(queue.depth(at(0)), depth(0, 0, 2));
        assert_eq!(queue.hide(at(0), held, at(90)), Err(Stale));
        queue.forget(at(0), of(3));
        assert_eq!(queue.depth(at(1)), depth(1, 0, 0));
        let last = queue.take(at(1), 10, at(60)).remove(0).0;
        queue.remove(at(1), last);
        assert!(queue.hints.is_empty(), "removed messages are still indexed: {:?}", queue.hints);
    }

    #[test]
    fn message_limits_bound_age_receives_and_hidden_time() {
        let mut queue = Messages::mortal(MessageLimits {
            retention: Some(Millis::new(100)),
            receives_max: Some(2),
            hidden_max: Some(Millis::new(20)),
            in_flight_max: Some(1),
        });
        queue.push(at(0), 1, ("a".into(), Lane::default()), at(0));
        queue.push(at(0), 2, ("b".into(), Lane::default()), at(0));
        let (first, _) = queue.take(at(0), 10, at(10)).remove(0);
        assert!(queue.take(at(0), 10, at(10)).is_empty(), "one is in flight, and no more may be");
        assert_eq!(queue.hide(at(9), first, at(21)), Err(Stale));
        assert_eq!(queue.hide(at(9), first, at(20)), Ok(()));
        queue.remove(at(9), first);
        for now in [10, 20] {
            assert_eq!(queue.take(at(now), 10, at(now + 5)).len(), 1);
        }
        assert!(queue.take(at(30), 10, at(40)).is_empty());
        assert_eq!(queue.take_dead(), [("b".to_owned(), Lane::default())]);
        queue.push(at(30), 3, ("c".into(), Lane::default()), at(40));
        queue.take(at(40), 1, at(200));
        assert_eq!(queue.depth(at(129)), depth(0, 1, 0));
        assert_eq!(queue.depth(at(130)), Depth::default());
    }

    #[test]
    fn a_delivery_is_stale_once_the_message_is_visible_again_gone_or_received_by_another() {
        let mut queue = Messages::default();
        queue.push(at(0), 1, ("a".into(), Lane::default()), at(0));
        let (first, _) = queue.take(at(0), 1, at(10)).remove(0);
        assert_eq!(queue.hide(at(9), first, at(20)), Ok(()));
        assert_eq!(queue.hide(at(20), first, at(30)), Err(Stale));

        let (second, _) = queue.take(at(20), 1, at(40)).remove(0);
        assert_eq!(second, Delivery { id: 1, receives: 2 });
        assert_eq!(queue.hide(at(21), first, at(99)), Err(Stale));
        queue.remove(at(21), first);
        assert_eq!(queue.depth(at(21)), depth(0, 1, 0), "an old delivery removes nothing");

        assert_eq!(queue.hide(at(21), second, at(21)), Ok(()));
        assert_eq!(queue.depth(at(21)), depth(1, 0, 0), "hidden for no time is visible at once");
        queue.remove(at(21), second);
        assert_eq!(queue.hide(at(21), second, at(30)), Err(Stale));
        assert_eq!(queue.depth(at(99)), Depth::default());
    }
}

//! Decisions, their writes, and what follows from them. Around `decide`, it does what the service does.

use std::ops::Range;
use std::sync::Arc;

use tickover_core::task::Status;
use tickover_core::time::Timestamp;

use super::Protocol;
use super::actor::{Actor, Held, Intent};
use super::answer::{Answer, Ask, Question, Then};
use super::bug::Bug;
use super::record::Record;
use super::state::{Message, State, Who};
use super::table::{Verdict, write};
use crate::plan::START;

/// The number of a lease or nonce that isn't drawn yet.
const UNDRAWN: u8 = 0;
/// Numbers of leases.
const LEASES: Range<u8> = 1..40;
/// Numbers of the ticks' writes.
const TICK_NUMBERS: Range<u8> = 40..64;

/// A command on its way.
pub(super) struct Asked {
    pub(super) task: u8,
    pub(super) ask: Ask,
    pub(super) lease: Option<u8>,
    pub(super) received_message: Option<Message>,
}

/// A decision after an attempt to write it.
struct Written {
    verdict: Verdict,
    asked: Asked,
    lease: u8,
    answer: Arc<Answer>,
}

impl Protocol {
    /// An actor decides. Its next step is the write, if there is one.
    pub(super) fn ask(&self, state: &mut State, who: Who, asked: Asked, record: Option<Record>) {
        let lease = asked.lease.unwrap_or(UNDRAWN);
        let answer = self.answered(&asked, record.as_ref(), lease, UNDRAWN, state.clock);
        if answer.change.is_none() {
            return self.carry_out(state, who, asked, lease, &answer);
        }
        let Asked { task, ask, lease, received_message } = asked;
        let (copy, decided, sends_messages) = (record, state.clock, !answer.parcels.is_empty());
        let intent =
            Intent { task, ask, lease, number: None, received_message, copy, decided, sends_messages };
        state.put(who, Actor::Committing(Arc::new(intent)));
    }

    fn answered(
        &self,
        asked: &Asked,
        record: Option<&Record>,
        lease: u8,
        number: u8,
        clock: u8,
    ) -> Arc<Answer> {
        let Asked { task, ask, .. } = *asked;
        self.answer(
            Question { record: record.cloned(), task, ask, lease, number, clock },
            self.instant(clock),
        )
    }

    pub(super) fn commit(&self, state: &mut State, who: Who) -> Option<()> {
        let Actor::Committing(intent) = state.actor(who)?.clone() else { return None };
        let Written { verdict, asked, lease, answer } = self.write(state, who, &intent)?;
        match verdict {
            Verdict::Written(_) | Verdict::Done => self.carry_out(state, who, asked, lease, &answer),
            Verdict::Conflict => {
                let current = state.record(intent.task).cloned();
                self.ask(state, who, asked, current);
            }
        }
        Some(())
    }

    /// Writes, but the answer is lost, so the actor will try again. If nothing is written, this counts as a fault
    /// before the write.
    pub(super) fn commit_unanswered(&self, state: &mut State, who: Who) -> Option<()> {
        let Actor::Committing(intent) = state.actor(who)?.clone() else { return None };
        let Written { verdict, lease, .. } = self.write(state, who, &intent)?;
        let Verdict::Written(record) = verdict else { return None };
        let number = record.nonce.as_bytes()[0];
        // A claim keeps its lease after this: others may have seen it.
        let lease = intent.lease.or(Some(lease).filter(|_| matches!(intent.ask, Ask::Claim { .. })));
        let again = Intent { lease, number: Some(number), ..(*intent).clone() };
        state.put(who, Actor::Committing(Arc::new(again)));
        Some(())
    }

    /// Draws the decision's random numbers, decides again with them, and writes.
    fn write(&self, state: &mut State, who: Who, intent: &Intent) -> Option<Written> {
        let Intent { task, ask, lease, received_message, .. } = intent.clone();
        let fresh = |range| intent.number.unwrap_or_else(|| state.fresh(range));
        // Every write under a lease is identified by that lease.
        let (lease, number) = match (who, lease) {
            (_, Some(lease)) => (lease, lease),
            (Who::Worker(_), None) => {
                let lease = fresh(LEASES);
                (lease, lease)
            }
            (Who::Tick(_), None) => (UNDRAWN, fresh(TICK_NUMBERS)),
        };
        let asked = Asked { task, ask, lease: intent.lease, received_message };
        let answer = self.answered(&asked, intent.copy.as_ref(), lease, number, intent.decided);
        let stored = state.record(task).cloned();
        let any_version = self.bug == Some(Bug::AnyVersion);
        let change = answer.change.as_ref().filter(|_| intent.copy.is_some());
        let verdict = change.map_or(Verdict::Conflict, |change| write(stored.as_ref(), change, any_version));
        if let Verdict::Written(record) = &verdict {
            note(state, task, stored.as_ref(), record);
            *state.table.get_mut(usize::from(task))? = Some(record.clone());
        }
        Some(Written { verdict, asked, lease, answer })
    }

    /// The write is done. A late send is the same as a message that arrives late.
    fn carry_out(&self, state: &mut State, who: Who, asked: Asked, lease: u8, answer: &Answer) {
        self.send(state, answer);
        let Asked { task, mut received_message, .. } = asked;
        let (next, back) = match answer.then {
            Then::Work => (Actor::Working(Held { task, lease, received_message }), None),
            Then::GoOn => {
                let hidden = self.index(self.now(state).plus(self.plan.lease));
                received_message = received_message.map(|message| Message { from: hidden, ..message });
                (Actor::Working(Held { task, lease, received_message }), None)
            }
            Then::Delete => (Actor::Idle, None),
            Then::Leave { until: at } | Then::Later { at } => {
                (Actor::Idle, received_message.map(|message| Message { from: self.index(at), ..message }))
            }
            Then::Forget => (Actor::Idle, received_message),
        };
        state.messages.extend(back);
        state.put(who, next);
    }

    pub(super) fn send(&self, state: &mut State, answer: &Answer) {
        let messages = answer.parcels.iter().map(|(body, at)| (body.clone(), self.index(*at)));
        state.messages.extend(messages.map(|(body, from)| Message { body, from }));
    }

    /// The index of the first of the clock's instants at or after this one; an index that never comes, if it is after
    /// all of them.
    pub(super) fn index(&self, at: Timestamp) -> u8 {
        let earlier = self.plan.instants.iter().filter(|instant| **instant < at.max(START)).count();
        u8::try_from(earlier).unwrap_or(u8::MAX)
    }
}

/// Records what the properties need.
fn note(state: &mut State, task: u8, before: Option<&Record>, after: &Record) {
    let had_ended = before.is_some_and(|before| before.ended().is_some());
    if had_ended && before != Some(after) {
        state.seen.revived = true;
    }
    let was_version = before.map_or(0, |before| before.version);
    if after.status() == Status::Completed
        && after.version != was_version
        && let Some(results) = state.seen.results.get_mut(usize::from(task))
    {
        *results += 1;
    }
}

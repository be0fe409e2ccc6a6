//! The possible actions in a state, and their results.

use super::Protocol;
use super::actor::{Actor, Held};
use super::answer::Ask;
use super::decisions::Asked;
use super::state::{Action, Body, State, Who};
use super::table::{Verdict, write};

impl Protocol {
    /// All possible actions.
    pub(super) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        let faults = !self.is_last(state);
        let unscheduled = state.table.iter().any(Option::is_none);
        if unscheduled {
            actions.push(Action::Schedule);
            if state.left.crashes > 0 {
                actions.push(Action::ScheduleUnsent);
            }
        }
        for (who, actor) in state.everybody() {
            match actor {
                Actor::Idle => continue,
                Actor::Committing(intent) => {
                    actions.push(Action::Commit(who));
                    if faults && state.left.crashes > 0 && intent.sends_messages {
                        actions.push(Action::CommitUnsent(who));
                    }
                    if faults && state.left.lost_answers > 0 {
                        actions.push(Action::CommitUnanswered(who));
                    }
                }
                Actor::Working(_) => self.at_work(state, who, actions),
            }
            if faults && state.left.crashes > 0 {
                actions.push(Action::Crash(who));
            }
        }
        possible_messages(state, faults, actions);
        if self.plan.sweeps && idle(&state.ticks).is_some() {
            let due = |task: &u8| state.record(*task).and_then(|record| record.due);
            let now = self.now(state);
            let tasks = (0..self.plan.tasks).filter(|task| due(task).is_some_and(|due| due.at <= now));
            actions.extend(tasks.map(Action::ProbeTask));
        }
        if faults && !unscheduled {
            actions.push(Action::Advance);
        }
    }

    fn at_work(&self, state: &State, who: Who, actions: &mut Vec<Action>) {
        let Who::Worker(at) = who else { return };
        actions.push(Action::Complete(at));
        if state.left.failures > 0 {
            actions.push(Action::Fail(at));
        }
        if state.left.heartbeats > 0 && !self.is_last(state) {
            actions.push(Action::Heartbeat(at));
        }
    }

    /// Executes an action; `None` if it changes nothing.
    pub(super) fn take(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Schedule => self.schedule(state, true)?,
            Action::ScheduleUnsent => {
                state.left.crashes -= 1;
                self.schedule(state, false)?;
            }
            Action::Deliver(at) => self.deliver(state, at)?,
            Action::Fire(at) => self.fire(state, at)?,
            Action::ProbeTask(task) => self.look(state, task)?,
            Action::Commit(who) => self.commit(state, who)?,
            Action::CommitUnanswered(who) => {
                state.left.lost_answers -= 1;
                self.commit_unanswered(state, who)?;
            }
            Action::CommitUnsent(who) => {
                state.left.crashes -= 1;
                self.commit_unanswered(state, who)?;
                state.die(who)?;
            }
            Action::Complete(at) => self.report(state, at, Ask::Complete)?,
            Action::Fail(at) => {
                state.left.failures -= 1;
                self.report(state, at, Ask::Fail)?;
            }
            Action::Heartbeat(at) => {
                state.left.heartbeats -= 1;
                self.report(state, at, Ask::Heartbeat)?;
            }
            Action::Crash(who) => {
                state.left.crashes -= 1;
                state.die(who)?;
            }
            Action::Lose(at) => {
                state.left.losses -= 1;
                state.messages.remove(at);
            }
            Action::Duplicate(at) => {
                state.left.duplicates -= 1;
                let twin = state.messages.get(at)?.clone();
                state.messages.push(twin);
            }
            Action::Advance => state.clock += 1,
        }
        Some(())
    }

    /// Written at once, because no other actor can use a record that doesn't exist.
    fn schedule(&self, state: &mut State, sent: bool) -> Option<()> {
        let at = state.table.iter().position(Option::is_none)?;
        let answer = self.first_answer(u8::try_from(at).ok()?, self.now(state));
        let Verdict::Written(record) = write(None, answer.change.as_ref()?, false) else { return None };
        if sent {
            self.send(state, &answer);
        }
        *state.table.get_mut(at)? = Some(record);
        Some(())
    }

    /// A claim from a hint: decided on the copy, without a read.
    fn deliver(&self, state: &mut State, at: usize) -> Option<()> {
        let worker = Who::Worker(idle(&state.workers)?);
        let Body::Hint(copy) = state.messages.get(at)?.body.clone() else { return None };
        let mut message = state.messages.remove(at);
        message.from = self.index(self.now(state).plus(self.plan.lease));
        let (task, ask) = (copy.incarnation.as_bytes()[0], Ask::Claim { version: copy.version });
        self.ask(
            state,
            worker,
            Asked { task, ask, lease: None, received_message: Some(message) },
            Some(copy),
        );
        Some(())
    }

    /// The probe of a timer. Its message is deleted at once: losing it must do no harm.
    fn fire(&self, state: &mut State, at: usize) -> Option<()> {
        let tick = Who::Tick(idle(&state.ticks)?);
        let Body::Timer { task, due_at } = state.messages.get(at)?.body.clone() else { return None };
        state.messages.remove(at);
        let record = state.record(task).cloned();
        self.ask(
            state,
            tick,
            Asked { task, ask: Ask::Timer { due_at }, lease: None, received_message: None },
            record,
        );
        Some(())
    }

    /// The probe of a tick. It writes nothing if another tick has just done the same.
    pub(super) fn look(&self, state: &mut State, task: u8) -> Option<()> {
        let tick = Who::Tick(idle(&state.ticks)?);
        let (looks_empty, record) = (state.looks_empty(), state.record(task).cloned());
        self.ask(
            state,
            tick,
            Asked { task, ask: Ask::Due { looks_empty }, lease: None, received_message: None },
            record,
        );
        (state.actor(tick)? != &Actor::Idle).then_some(())
    }

    /// A worker's report, on the current record.
    fn report(&self, state: &mut State, at: usize, ask: Ask) -> Option<()> {
        let who = Who::Worker(at);
        let Actor::Working(Held { task, lease, received_message }) = state.actor(who)?.clone() else {
            return None;
        };
        let record = state.record(task).cloned();
        self.ask(state, who, Asked { task, ask, lease: Some(lease), received_message }, record);
        Some(())
    }
}

fn possible_messages(state: &State, faults: bool, actions: &mut Vec<Action>) {
    for (at, message) in state.messages.iter().enumerate() {
        if at > 0 && state.messages.get(at - 1) == Some(message) {
            continue;
        }
        let visible = message.from <= state.clock;
        match message.body {
            Body::Hint(_) if visible && idle(&state.workers).is_some() => {
                actions.push(Action::Deliver(at));
            }
            Body::Timer { .. } if visible && idle(&state.ticks).is_some() => {
                actions.push(Action::Fire(at));
            }
            Body::Hint(_) | Body::Timer { .. } => {}
        }
        if faults && state.left.losses > 0 {
            actions.push(Action::Lose(at));
        }
        if faults && state.left.duplicates > 0 {
            actions.push(Action::Duplicate(at));
        }
    }
}

fn idle(actors: &[Actor]) -> Option<usize> {
    actors.iter().position(|actor| *actor == Actor::Idle)
}

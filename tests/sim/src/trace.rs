//! A history as text: one line for each step.

pub mod execution;

use std::collections::BTreeSet;
use std::fmt;

use tickover_core::decision::Effect;
use tickover_core::task::command::{Command, SignOfLife};
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::task::{Ending, State, Task};
use tickover_core::time::Timestamp;

use super::Run;
use super::history::{Actor, Answer, Decided, Event, Fate, Fault, Note, Report, Request, Stored, What};
use super::plan::START;

/// Every step of a run, as one line each. Claims that found nothing to decide on are left out: there are thousands.
pub fn lines(run: &Run) -> impl Iterator<Item = String> + '_ {
    let decided: BTreeSet<u64> =
        run.events.iter().filter_map(|event| event.what.decision()).map(|(call, _)| call).collect();
    let vain: BTreeSet<u64> = run.events.iter().filter_map(|event| vain_claim(&event.what)).collect();
    let is_told = move |event: &&Event| match &event.what {
        What::Called { call, .. } | What::Answered { call, .. } => {
            decided.contains(call) || !vain.contains(call)
        }
        What::Decided(_) | What::Stored(_) | What::OfExecution(_) | What::Message { .. } | What::Fault(_) => {
            true
        }
    };
    run.events.iter().filter(is_told).map(ToString::to_string)
}

fn vain_claim(what: &What) -> Option<u64> {
    match what {
        What::Answered { call, answer: Answer::Claimed(held) } if held.is_empty() => Some(*call),
        What::Answered { call, answer: Answer::Taken(held, turns) }
            if held.is_empty() && turns.is_empty() =>
        {
            Some(*call)
        }
        What::Called { .. }
        | What::Answered { .. }
        | What::Decided(_)
        | What::Stored(_)
        | What::OfExecution(_)
        | What::Message { .. }
        | What::Fault(_) => None,
    }
}

/// A hash of a whole history.
pub fn digest(run: &Run) -> u64 {
    lines(run)
        .flat_map(String::into_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An instant as time since the beginning: `1:02:03.004`.
pub fn clock(at: Timestamp) -> String {
    let ms = at.as_millis() - START.as_millis();
    let (sign, ms) = if ms < 0 { ("-", -ms) } else { ("", ms) };
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    format!("{sign}{hours}:{minutes:02}:{:02}.{:03}", ms / 1_000 % 60, ms % 1_000)
}

/// A short description of a record.
pub fn brief(task: &Task) -> String {
    let due = task.due.map_or_else(|| "none".to_owned(), |due| format!("{} {:?}", clock(due.at), due.kind));
    let deadline = task.deadline_at.map_or_else(String::new, |at| format!(" deadline {}", clock(at)));
    format!(
        "{} of {} v{} {}{deadline}, due {due}",
        task.id,
        task.incarnation,
        task.version,
        state(&task.state)
    )
}

fn state(state: &State) -> String {
    let by = |name: &str, at: Option<Timestamp>| {
        at.map_or_else(String::new, |at| format!(" {name} {}", clock(at)))
    };
    match state {
        State::Pending(pending) => format!(
            "pending from {}{}{}",
            clock(pending.available_at),
            by("start by", pending.schedule_to_start_at),
            if pending.hint_later { " hint later" } else { "" },
        ),
        State::Running(running) => format!(
            "running with {} until {}{}{}{}",
            running.lease,
            clock(running.lease_expires_at),
            by("close by", running.start_to_close_at),
            by("heartbeat by", running.heartbeat_at),
            if running.cancel_requested { " to be cancelled" } else { "" },
        ),
        State::Ended(ended) => {
            let outcome = format!("{:?}", ended.outcome);
            let outcome: String = outcome.chars().take(90).collect();
            format!("ended {outcome}, kept until {}", clock(ended.expires_at))
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => write!(f, "world"),
            Self::Client(number) => write!(f, "client-{number}"),
            Self::Worker(number) => write!(f, "worker-{number}"),
            Self::Ticker(number) => write!(f, "ticker-{number}"),
            Self::Timers(number) => write!(f, "timers-{number}"),
            Self::Operator => write!(f, "operator"),
            Self::Outsider => write!(f, "outsider"),
            Self::Filler => write!(f, "filler"),
            Self::Batch(number) => write!(f, "batch-{number}"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>13}  {:<9} ", clock(self.at), self.actor.to_string())?;
        match &self.what {
            What::Called { call, request } => write!(f, "#{call} asks to {request}"),
            What::Answered { call, answer } => write!(f, "#{call} gets {answer}"),
            What::Decided(decided) => write!(f, "{decided}"),
            What::Stored(stored) => write!(f, "{stored}"),
            What::OfExecution(happening) => write!(f, "{happening}"),
            What::Message { queue, fate, note } => write!(f, "  {queue}: {fate} {note}"),
            What::Fault(fault) => write!(f, "  !! {fault}"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule(ids) => {
                let ids: Vec<_> = ids.iter().map(|id| id.as_ref().map_or("*", |id| id.as_str())).collect();
                write!(f, "schedule {}", ids.join(", "))
            }
            Self::Claim(queue) => write!(f, "claim from {queue}"),
            Self::ClaimTogether(queue, fill) => write!(f, "claim from {queue} together, within {fill}"),
            Self::Work(queue) => write!(f, "work from {queue}"),
            Self::OfExecution(asked) => write!(f, "{asked}"),
            Self::ClaimById(task) => write!(f, "claim {task}"),
            Self::Report(held, report) => {
                let what = match report {
                    Report::Heartbeat(SignOfLife::Both) => "heartbeat",
                    Report::Heartbeat(SignOfLife::Worker) => "heartbeat of the worker",
                    Report::Heartbeat(SignOfLife::Work) => "heartbeat of the work",
                    Report::Complete(_) => "complete",
                    Report::Fail { .. } => "fail",
                    Report::Release => "release",
                };
                write!(f, "{what} {} of {} with {}", held.task, held.incarnation, held.lease)
            }
            Self::Cancel(task) => write!(f, "cancel {task}"),
            Self::Retry(task) => write!(f, "retry {task}"),
            Self::Pause(queue, true) => write!(f, "pause {queue}"),
            Self::Pause(queue, false) => write!(f, "resume {queue}"),
            Self::Tick(minute) => write!(f, "tick for {}", clock(*minute)),
            Self::Fire(note) => write!(f, "fire {note}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduled(made) => {
                for one in made {
                    match one {
                        Ok(made) => {
                            write!(f, "{} of {} existed: {}; ", made.task, made.incarnation, made.existed)?;
                        }
                        Err(error) => write!(f, "{error}; ")?,
                    }
                }
                Ok(())
            }
            Self::Claimed(held) if held.is_empty() => write!(f, "nothing"),
            Self::Claimed(held) => {
                held.iter().try_for_each(|held| write!(f, "{} with {}; ", held.task, held.lease))
            }
            Self::Taken(held, turns) => {
                held.iter().try_for_each(|held| write!(f, "{} with {}; ", held.task, held.lease))?;
                turns.iter().try_for_each(|turn| write!(f, "the turn of {turn}; "))
            }
            Self::OfExecution(told) => write!(f, "{told}"),
            Self::Renewed { lease_expires_at } => write!(f, "renewed until {}", clock(*lease_expires_at)),
            Self::Closed { duplicate } => write!(f, "closed, duplicate: {duplicate}"),
            Self::Done => write!(f, "done"),
            Self::Ticked(report) => write!(f, "{report:?}"),
            Self::Fired(fired) => write!(f, "{fired:?}"),
            Self::NotFired(error) => write!(f, "error: {error}"),
            Self::Failed(error) => write!(f, "error: {error}"),
        }
    }
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = match &self.command {
            Command::Schedule(_) => "schedule",
            Command::Bounce(_) => "bounce",
            Command::Claim(_) => "claim",
            Command::Heartbeat(_) => "heartbeat",
            Command::Complete(_) => "complete",
            Command::Fail(_) => "fail",
            Command::Release { .. } => "release",
            Command::Cancel { .. } => "cancel",
            Command::Retry(_) => "retry",
            Command::Hold => "hold",
            Command::Unpark => "unpark",
            Command::WaitInLine { .. } => "wait in line",
            Command::Due(_) => "due",
            Command::Timer { .. } => "timer",
        };
        let seen =
            self.seen.as_ref().map_or_else(|| "nothing".to_owned(), |task| format!("v{}", task.version));
        write!(f, "#{} decides {command} on {seen} at its {}: ", self.call, clock(self.now))?;
        match &self.outcome {
            // The text of a trace doesn't follow the names in code.
            Ok(Reply::Extended) => f.write_str("Renewed")?,
            Ok(Reply::Claim(ClaimReply::Leased)) => f.write_str("Claim(Held)")?,
            Ok(Reply::Claim(ClaimReply::Stale)) => f.write_str("Claim(Spent)")?,
            Ok(reply) => write!(f, "{reply:?}")?,
            Err(reject) => write!(f, "no: {reject}")?,
        }
        effects(&self.effects, f)
    }
}

fn effects(effects: &[Effect], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    effects.iter().try_for_each(|effect| match effect {
        Effect::Dispatch { hint, at } => {
            write!(f, ", hint of v{} for {}", hint.task.version, clock(*at))
        }
        Effect::Timer(timer) => write!(f, ", timer for {}", clock(timer.at)),
        Effect::Turn { hint, at, .. } => {
            write!(f, ", hint of the turn of {} for {}", hint.turn.id, clock(*at))
        }
        Effect::NotifyParent(parent) => write!(f, ", {} is notified", parent.execution),
        Effect::FreePlaces(_) => write!(f, ", its places are given up"),
        Effect::CameToLine { gate, .. } => write!(f, ", it comes to the line of {gate}"),
    })
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match &self.before {
            None => "creates",
            Some(before) if before.incarnation != self.after.incarnation => "replaces",
            Some(before) if before.version == self.after.version => "re-arms",
            Some(_) => "writes",
        };
        write!(f, "{verb} {}", brief(&self.after))?;
        let is_new = |before: &Task| before.history.last() != self.after.history.last();
        match self.after.history.last() {
            Some(past) if self.before.as_ref().is_some_and(is_new) => {
                let ending = match past.ending {
                    Ending::TimedOut(kind) => format!("timed out: {}", kind.as_str()),
                    ending @ (Ending::Completed
                    | Ending::Failed
                    | Ending::Released
                    | Ending::Lost
                    | Ending::Cancelled) => ending.as_str().to_owned(),
                };
                write!(f, " (attempt {} {ending})", past.attempt)
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(delay) if delay.is_zero() => write!(f, "sent"),
            Self::Sent(delay) => write!(f, "sent, visible in {delay}:"),
            Self::Dropped => write!(f, "!! lost"),
            Self::Refused => write!(f, "!! refused"),
            Self::Duplicated(delay) => write!(f, "!! duplicated, visible in {delay}:"),
            Self::Received => write!(f, "received"),
            Self::NeverReceived => write!(f, "!! delivered, never received"),
            Self::Deleted => write!(f, "deleted"),
            Self::Shown => write!(f, "!! shown to others"),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hint { task, incarnation, version } => {
                write!(f, "hint of {task} of {incarnation} v{version}")
            }
            Self::Turn { execution, incarnation, at } => {
                write!(f, "hint of the turn of {execution} of {incarnation}")?;
                at.map_or(Ok(()), |at| write!(f, " for {}", clock(at)))
            }
            Self::Timers(timers) => timers.iter().enumerate().try_for_each(|(place, timer)| {
                let and = if place == 0 { "" } else { " and " };
                let (at, due_at) = (clock(timer.at), clock(timer.due_at));
                write!(f, "{and}timer of {} for {at}, due {due_at}", timer.record)
            }),
            Self::Other(body) => f.write_str(body),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed(restart) => write!(f, "dies, restarts in {restart}"),
            Self::Frozen(span) => write!(f, "is frozen for {span}"),
            Self::ClockJumped(ahead_ms) => write!(f, "its clock is {ahead_ms} ms ahead now"),
            Self::CallerLeft => write!(f, "its caller leaves"),
            Self::LostAnswer => write!(f, "an answer is lost"),
            Self::LateWrite(after) => write!(f, "no answer, and the write is applied in {after}"),
            Self::Unavailable => write!(f, "no answer"),
            Self::Throttled => write!(f, "throttled"),
            Self::Conflicted => write!(f, "refused because of another write"),
            Self::WrongDepth => write!(f, "a queue wrongly reports that it is empty"),
            Self::MissedTicks(minutes) => write!(f, "no tick for {minutes} min"),
            Self::Away => write!(f, "no answer: the service is unreachable"),
            Self::Deleted(item) => write!(f, "deleted by time to live: {item:?}"),
            Self::Redriven(count) => write!(f, "{count} dead letters are redriven"),
            Self::KeyThrottled => write!(f, "a key is throttled"),
            Self::LoopStopped(hops) => write!(f, "a loop is stopped after {hops} hops"),
            Self::DiedMidway(midst) => write!(f, "is killed during: {midst:?}"),
            Self::NotInvoked => write!(f, "isn't invoked: the concurrency limit is reached"),
            Self::TooNew => write!(f, "a newer build has written this"),
            Self::FaultPhaseOver => write!(f, "the fault phase is over"),
        }
    }
}

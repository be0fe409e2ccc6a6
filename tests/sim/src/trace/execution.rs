//! Events about executions, as one line each.

use std::fmt;

use tickover_core::execution::command::Command;
use tickover_core::execution::decision::{Reply, StartTurnReply};
use tickover_core::execution::journal::{Entry, Happened, SegmentKey};
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::StepName;

use super::clock;
use crate::history::act::{Act, Stage};
use crate::history::execution::{
    Asked, Change, Done, ExecutionCallAnswer, Happening, HeldTurn, Ruling, ScriptAction, TurnCall,
};

/// A short description of a record.
pub fn brief(execution: &Execution) -> String {
    let due =
        execution.due.map_or_else(|| "none".to_owned(), |due| format!("{} {:?}", clock(due.at), due.kind));
    let deadlines = [("deadline", execution.deadline_at), ("run deadline", execution.run_deadline_at)];
    let failing = execution.failing.as_ref().map(|failing| failing.deadline_at);
    let instants = deadlines.into_iter().chain([("failing until", failing)]);
    let held = [(execution.paused, " paused"), (execution.cancel_requested, " to be cancelled")];
    let marks: String = instants
        .filter_map(|(name, at)| at.map(|at| format!(" {name} {}", clock(at))))
        .chain(held.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name.to_owned()))
        .collect();
    format!(
        "{} of {} v{} run {} {}{marks}, wakes {}, due {due}",
        execution.id,
        execution.incarnation,
        execution.version,
        execution.run,
        state(&execution.state),
        execution.wakes,
    )
}

fn state(state: &ExecutionState) -> String {
    match state {
        ExecutionState::Pending(ready) => {
            let later = if ready.hint_later { " hint later" } else { "" };
            format!("pending from {}{later}", clock(ready.available_at))
        }
        ExecutionState::Running(turn) => {
            format!("running with {} until {}", turn.lease, clock(turn.lease_expires_at))
        }
        ExecutionState::Waiting(waiting) => {
            let until = waiting.until.map_or_else(String::new, |at| format!(" until {}", clock(at)));
            let recheck =
                waiting.recheck.map_or_else(String::new, |one| format!(" look at {}", clock(one.at)));
            let later = if waiting.hint_later { " hint later" } else { "" };
            let stirred = if waiting.wake_requested { " stirred" } else { "" };
            format!("waiting{until}{recheck}{later}{stirred} seen {}", waiting.seen_wakes)
        }
        ExecutionState::Closing(closed) => format!("closing {}", cut(&closed.outcome)),
        ExecutionState::Ended(closed) => {
            format!("ended {}, kept until {}", cut(&closed.outcome), clock(closed.expires_at))
        }
    }
}

fn cut(what: &impl fmt::Debug) -> String {
    format!("{what:?}").chars().take(70).collect()
}

/// The name of a command.
pub const fn verb(command: &Command) -> &'static str {
    match command {
        Command::Start(_) => "start",
        Command::StartTurn(_) => "start turn",
        Command::Record(_) => "record",
        Command::Suspend(_) => "suspend",
        Command::Close(_) => "close",
        Command::Heartbeat { .. } => "heartbeat",
        Command::Release { .. } => "release",
        Command::SendEvent(_) => "send event",
        Command::ClearEvents { .. } => "clear events",
        Command::Cancel => "cancel",
        Command::Terminate => "terminate",
        Command::Pause => "pause",
        Command::Resume => "resume",
        Command::Restart(_) => "restart",
        Command::RetryStep { .. } => "retry step",
        Command::Finish(_) => "finish",
        Command::Bounce(_) => "bounce",
        Command::WaitInLine { .. } => "wait in line",
        Command::NoteProgress(_) => "gone through",
        Command::Unpark => "unpark",
        Command::Due(_) => "due",
        Command::Timer { .. } => "timer",
    }
}

/// A short description of an entry.
pub fn entry(entry: &Entry) -> String {
    match &entry.what {
        Happened::Attempt { name, attempt, .. } => format!("{name} try {attempt}"),
        Happened::Remote { name } => format!("{name} remote"),
        Happened::Child { name, execution, .. } => format!("{name} child {execution}"),
        Happened::Step { name, outcome, .. } => format!("{name} {}", outcome.as_str()),
        Happened::Reopened { name, .. } => format!("{name} reopened"),
        Happened::Captured { name, .. } => format!("{name} captured"),
        Happened::Until { name, until } => format!("{name} until {}", clock(*until)),
        Happened::Fired { name } => format!("{name} fired"),
        Happened::Event { name, id, .. } => {
            format!("event {name} {}", id.as_ref().map_or("-", |id| id.as_str()))
        }
        Happened::Waited { name, event } => {
            format!("{name} got {}", event.as_ref().map_or("nothing", |event| event.as_str()))
        }
        Happened::EventsCleared { name, count } => format!("{count} {name} cleared"),
        Happened::Patches { names } => format!("patches {}", names.join(" ")),
        Happened::Note { kind, .. } => kind.clone(),
    }
}

fn entries(entries: &[Entry]) -> String {
    entries.iter().map(entry).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decided(ruling) => write!(f, "{ruling}"),
            Self::Stored(change) => write!(f, "{change}"),
            Self::Sealed { key, segment } => {
                let SegmentKey { incarnation, run, number, mark } = key;
                write!(
                    f,
                    "seals {number} of run {run} of {incarnation} as {mark}: {}",
                    entries(&segment.entries)
                )
            }
            Self::Joined { execution, marked, of } => {
                write!(f, "joins {execution}: {marked} of {of}")
            }
            Self::Did(ScriptAction { turn, what: Done::Began(name) }) => write!(f, "starts {name} of {turn}"),
            Self::Did(ScriptAction { turn, what: Done::WentOn { known, journal } }) => {
                write!(f, "goes on with {turn} from {known} of {} entries", journal.len())
            }
            Self::Acted(act) => write!(f, "{act}"),
            Self::Did(ScriptAction { turn, what: Done::Took { wait, event, payload } }) => {
                let payload: String = payload.chars().take(24).collect();
                write!(f, "{wait} of {turn} takes {event}: {payload}")
            }
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, key, step, attempt, stage } = self;
        let does = match stage {
            Stage::Begins => "starts",
            Stage::Asks => "calls the outside",
        };
        write!(f, "#{call} {step} {does}, attempt {attempt} of {key}")
    }
}

impl fmt::Display for HeldTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { execution, incarnation, run, lease } = self;
        write!(f, "{execution} of {incarnation} run {run} with {lease}")
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.seen.as_ref().map_or_else(|| "nothing".to_owned(), |one| format!("v{}", one.version));
        let command = verb(&self.command);
        write!(f, "#{} decides to {command} on {seen} at its {}: ", self.call, clock(self.now))?;
        match &self.outcome {
            // The text of a trace doesn't follow the names in code.
            Ok(Reply::StartTurn(StartTurnReply::LeasedByOther)) => f.write_str("StartTurn(Held)")?,
            Ok(Reply::StartTurn(StartTurnReply::NeedsIsolation)) => f.write_str("StartTurn(Suspect)")?,
            Ok(Reply::StartTurn(StartTurnReply::Stale)) => f.write_str("StartTurn(Spent)")?,
            Ok(reply) => write!(f, "{reply:?}")?,
            Err(reject) => write!(f, "no: {reject}")?,
        }
        super::effects(&self.effects, f)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match &self.before {
            None => "creates",
            Some(before) if before.incarnation != self.after.incarnation => "replaces",
            Some(before) if before.wakes != self.after.wakes => "wakes",
            Some(before) if before.version == self.after.version => "re-arms",
            Some(_) => "writes",
        };
        let sealed =
            self.after.sealed.map_or_else(String::new, |sealed| format!("{} sealed, ", sealed.entries));
        write!(f, "{verb} {}; {sealed}{}", brief(&self.after), entries(&self.after.journal))
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(id) => write!(f, "start {}", id.as_ref().map_or("*", |id| id.as_str())),
            Self::Turn(turn, call) => write!(f, "{call} {turn}"),
            Self::SendEvent { execution, event, id, .. } => {
                write!(f, "send {event} {} to {execution}", id.as_ref().map_or("-", |id| id.as_str()))
            }
            Self::Answer { execution, id } => write!(f, "wait for the answer of {execution} to {id}"),
            Self::CallBack { incarnation, event, is_heartbeat } => {
                let what = if *is_heartbeat { "a sign of life" } else { "a result" };
                write!(f, "report {what} for {event} of {incarnation}")
            }
            Self::Operate(id, operation) => write!(f, "{operation:?} {id}"),
        }
    }
}

impl fmt::Display for TurnCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(brought) => write!(f, "record [{}] in", entries(brought)),
            Self::Suspend(brought) => write!(f, "suspend with [{}]", entries(brought)),
            Self::Close(brought) => write!(f, "close with [{}]", entries(brought)),
            Self::Heartbeat => write!(f, "heartbeat"),
            Self::Release => write!(f, "release"),
            Self::Begin(names) => {
                let names: Vec<&str> = names.iter().map(StepName::as_str).collect();
                write!(f, "start {} of", names.join(", "))
            }
        }
    }
}

impl fmt::Display for ExecutionCallAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { execution, incarnation, existed } => {
                write!(f, "{execution} of {incarnation} existed: {existed}")
            }
            Self::Written(version) => write!(f, "written as v{version}"),
            Self::EventSent { duplicate } => write!(f, "sent, duplicate: {duplicate}"),
            Self::Answered(answer) => write!(f, "answer {answer:?}"),
            Self::EventsCleared(count) => write!(f, "{count} cleared"),
            Self::Done => write!(f, "done"),
        }
    }
}

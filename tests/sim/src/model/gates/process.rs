//! What a process does next, one read or one write at a time.

use super::record::Message;
use super::stored::Stored;

/// A process, and the message that led it here: if it dies, the message comes again.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot {
    pub(super) does: Process,
    pub(super) message: Option<Message>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Process {
    #[default]
    Idle,
    /// A client schedules a task, and reads the gate first.
    Schedules(u8),
    /// It reads or writes the gate.
    Acts(Acts),
    /// Its task has found no place, or another attempt that has one: it reads the record.
    Reads {
        claim: Claim,
        full: bool,
    },
    PutsItem(Claim),
    PutsRecord(Claim),
    /// It has a place, and claims.
    Claims {
        claim: Claim,
        since: i32,
        until: i32,
    },
    /// The record has left the line; the item is still there.
    Leaves {
        task: u8,
        position: u8,
        /// What it gives up then.
        next: Box<Self>,
    },
}

/// A claim of a task that is under way. That of a task in its version 0 is none: it is only being scheduled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Claim {
    pub(super) task: u8,
    /// The version of the record on which it was decided.
    pub(super) version: u8,
    /// Whether that waits in the line.
    pub(super) in_line: bool,
    pub(super) sure: bool,
    /// Whether it had no place before.
    pub(super) created: bool,
}

/// A change of the gate that is under way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Acts {
    pub(super) act: Act,
    pub(super) stage: Stage,
    /// What comes after it.
    pub(super) next: Box<Process>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Act {
    Take(Claim),
    /// What was taken before this version of the record.
    Free {
        task: u8,
        before: u8,
    },
    Withdraw {
        task: u8,
        before: u8,
    },
    Look,
    Patrol,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    /// It reads the gate.
    Reads,
    /// A tick reads the records of those who have places.
    Behind(Seen),
    /// It reads the items.
    Items(Seen),
    /// It reads the records of these.
    Records(Seen, Vec<(u8, u8)>),
    /// It writes the gate.
    Writes(Plan),
    /// It sends messages to those who were called, each a task and its position.
    Sends(Plan),
    /// It deletes items that were left over.
    Deletes(Plan),
}

/// What it has seen of the gate so far.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Seen {
    /// What the gate is to be.
    pub(super) after: Stored,
    pub(super) changed: bool,
    /// Whether places that are free then are to be offered.
    pub(super) offers: bool,
    /// Whether somebody else has written the gate since.
    pub(super) stale: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Plan {
    /// What is to be written.
    pub(super) after: Stored,
    pub(super) found: Found,
    pub(super) looks_again: bool,
}

/// Tasks of the line, each with its position, or with the version of its record.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Found {
    pub(super) called: Vec<(u8, u8)>,
    pub(super) left_over: Vec<(u8, u8)>,
    /// Those that ran, and whose workers were lost.
    pub(super) lost: Vec<(u8, u8)>,
}

impl Process {
    pub(super) fn acts(act: Act, next: Self) -> Self {
        Self::Acts(Acts { act, stage: Stage::Reads, next: Box::new(next) })
    }

    pub(super) fn tick() -> Self {
        Self::acts(Act::Patrol, Self::Idle)
    }

    pub(super) fn is_tick(&self) -> bool {
        matches!(self, Self::Acts(Acts { act: Act::Patrol, .. }))
    }

    /// Whether its death leaves something undone that no earlier death does: it has just written something. Who dies after
    /// a read might as well have died before it.
    pub(super) fn may_die(&self) -> bool {
        match self {
            Self::Idle | Self::Schedules(_) | Self::Reads { .. } => false,
            Self::Acts(Acts { act, stage, .. }) => match stage {
                Stage::Reads => !matches!(act, Act::Take(_) | Act::Patrol),
                Stage::Sends(_) | Stage::Deletes(_) => true,
                Stage::Behind(_) | Stage::Items(_) | Stage::Records(..) | Stage::Writes(_) => false,
            },
            Self::PutsItem(_) | Self::PutsRecord(_) | Self::Claims { .. } | Self::Leaves { .. } => true,
        }
    }

    /// Others have written the gate. Whoever is to write it goes back to its read: its write would be refused, and change
    /// nothing.
    pub(super) fn note_write(&mut self) {
        let Self::Acts(acts) = self else { return };
        match &mut acts.stage {
            Stage::Behind(seen) | Stage::Items(seen) | Stage::Records(seen, _) if !seen.changed => {
                seen.stale = true;
            }
            Stage::Behind(_) | Stage::Items(_) | Stage::Records(..) | Stage::Writes(_) => {
                acts.stage = Stage::Reads;
            }
            Stage::Reads | Stage::Sends(_) | Stage::Deletes(_) => {}
        }
    }
}

impl Claim {
    /// Of a task that is being scheduled.
    pub(super) const fn scheduling(task: u8) -> Self {
        Self { task, version: 0, in_line: false, sure: true, created: false }
    }

    /// Of a task whose worker was lost: it waits in the line again.
    pub(super) const fn coming_again(task: u8, version: u8) -> Self {
        Self { task, version, in_line: false, sure: true, created: false }
    }

    pub(super) const fn is_new(&self) -> bool {
        self.version == 0
    }
}

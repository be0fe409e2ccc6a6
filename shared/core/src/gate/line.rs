//! The line of a key: one item for each that waits, and nothing else.
//!
//! Its key follows from the record of the one that waits, and the record says that it waits there. So whoever leaves the
//! line deletes the very item with which it came, and an item whose record says otherwise was left behind.
//!
//! One that needs a place at several keys waits in the line of one of them, its home. As long as another key has no place
//! for it, the first of its branch that could come stands in the line of that key as well, for all of them: a stand-in.
//! Whoever looks at that line and calls it, or finds that it can't come, deletes it and looks at its home. So a key finds
//! out who waits for it, however many lines there are, and nobody else writes its record.
//!
//! A task stays in the line while its attempt runs, unless many may run at the key: so its due slot needn't be moved, because
//! whoever looks at the line finds out if its worker was lost. Its item is deleted with the end of the attempt.

use serde::{Deserialize, Serialize};

use crate::decision::{Effect, Write};
use crate::due::{fnv1a, shard_of_name};
use crate::duration::Millis;
use crate::flow::{Gated, Priority};
use crate::id::{Capability, GateId, Incarnation, Owner, QueueName};
use crate::time::Timestamp;

use super::{AskedLimit, Order};

/// Into how many parts of the store all lines are divided, so that no part has all their writes.
pub const PARTS: u8 = 4;
/// The tick looks at a record in a line for the first time after this long: nobody waits so long unless its item was
/// lost, or no place is ever free.
const FIRST_LOOK: Millis = Millis::from_secs(30 * 3_600);
/// And then each time after this long. Payloads and keys are kept for a week beyond the look that extends them.
const NEXT_LOOK: Millis = Millis::from_days(5);
/// Up to this limit, tasks stay in the line while they run. Whoever looks for the next one reads their items first.
pub(crate) const KEEPS_UP_TO: u16 = 50;
/// Where the stand-ins begin among the items of a line, behind all branches.
pub const STAND_INS: &str = "~";
/// How long the item of one that waits is kept. Before that, the tick writes it again.
pub const WAITER_KEPT: Millis = Millis::from_secs(60 * 86_400);

/// The part of the store that has the line of a key.
pub fn part_of(gate: &GateId) -> u8 {
    u8::try_from(shard_of_name(gate.as_str(), u16::from(PARTS))).unwrap_or(0)
}

/// When the tick looks next at a record in this position.
pub(crate) fn looked_at(position: Position, now: Timestamp) -> Timestamp {
    now.plus(if position.is_new(now) { FIRST_LOOK } else { NEXT_LOOK })
}

/// A position in the line of a key, as the record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Timestamp, u64)", into = "(Timestamp, u64)")]
pub struct Position {
    /// Since when it could have started.
    pub since: Timestamp,
    /// The version of the record that came to the line. So no two stays of a record have the same item.
    pub version: u64,
}

impl Position {
    /// Whether its item can't have been lost yet.
    pub(crate) fn is_new(self, now: Timestamp) -> bool {
        now.since(self.since) < FIRST_LOOK
    }
}

impl From<(Timestamp, u64)> for Position {
    fn from((since, version): (Timestamp, u64)) -> Self {
        Self { since, version }
    }
}

impl From<Position> for (Timestamp, u64) {
    fn from(Position { since, version }: Position) -> Self {
        (since, version)
    }
}

/// Those of one queue that require the same of their workers and need the same other keys. If one of them can't come to a
/// free place, none of them can.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Branch {
    #[serde(rename = "q")]
    pub queue: QueueName,
    /// The other keys at which they need a place, in the order of their digests.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<GateId>,
    /// A digest of the capabilities that they require; 0 if none.
    #[serde(rename = "r", default, skip_serializing_if = "is_zero")]
    pub required: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
const fn is_zero(required: &u32) -> bool {
    *required == 0
}

fn digest(text: &str) -> u32 {
    u32::try_from(fnv1a(text) & 0xffff_ffff).unwrap_or(0)
}

fn mark_of(queue: &QueueName, required: u32) -> u32 {
    digest(queue.as_str()) ^ required
}

impl Branch {
    /// A digest of its workers, by which the key's record names those that don't come.
    pub fn mark(&self) -> u32 {
        mark_of(&self.queue, self.required)
    }

    /// Where the keys of its items begin.
    pub fn start(&self) -> String {
        format!("{self}#")
    }

    /// Where the keys of its items end.
    pub fn end(&self) -> String {
        format!("{self}#~")
    }

    /// Where the keys of all items of its queue end: behind each character that follows a name, and before all of a longer one.
    pub fn end_of_queue(&self) -> String {
        format!("{},", self.queue)
    }

    /// Where those of its items end that have this priority.
    pub fn end_of(&self, priority: Priority) -> String {
        format!("{self}#{}~", rank(priority))
    }
}

impl std::fmt::Display for Branch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.queue.as_str())?;
        self.others.iter().try_for_each(|gate| write!(f, "!{gate}"))?;
        if self.required == 0 { Ok(()) } else { write!(f, "+{:08x}", self.required) }
    }
}

/// A task or an execution that waits at a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    #[serde(rename = "o")]
    pub owner: Owner,
    #[serde(rename = "i")]
    pub incarnation: Incarnation,
    #[serde(rename = "b")]
    pub branch: Branch,
    #[serde(rename = "p")]
    pub priority: Priority,
    #[serde(rename = "n")]
    pub position: Position,
    /// When its item was written.
    #[serde(rename = "w")]
    pub written_at: Timestamp,
    /// The key in whose line it waits, if this is its stand-in in the line of another.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub home: Option<GateId>,
}

impl Waiter {
    pub const fn order(&self) -> Order {
        Order { priority: self.priority, since: self.position.since }
    }

    /// Its sort key among the items of one key. In a branch, their order is that of the line, and so it is among stand-ins.
    pub fn sort_key(&self) -> String {
        format!("{}#{}", self.key_of_stay(), self.position.version)
    }

    /// The same without the version of its stay.
    pub fn key_of_stay(&self) -> String {
        let since = self.position.since.as_millis().max(0);
        let order = format!("{}{since:016}{}", rank(self.priority), self.incarnation);
        if self.home.is_some() { format!("{STAND_INS}{order}") } else { format!("{}#{order}", self.branch) }
    }

    /// Its stand-in in the line of another key at which it needs a place.
    #[must_use]
    pub fn stand_in(self, home: GateId, now: Timestamp) -> Self {
        Self { home: Some(home), written_at: now, ..self }
    }

    /// The keys at which it needs a place beside this one.
    pub fn others<'a>(&'a self, here: &'a GateId) -> impl Iterator<Item = &'a GateId> {
        self.home.iter().chain(&self.branch.others).filter(move |one| *one != here)
    }
}

/// Where the stand-ins of this priority end.
pub fn end_of_stand_ins(priority: Priority) -> String {
    format!("{STAND_INS}{}~", rank(priority))
}

const fn rank(priority: Priority) -> u8 {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

/// The key in whose line one waits that needs places at all of these: the scarcest, because there the others wait that
/// would come first.
pub fn home(gates: &[Gated]) -> Option<&Gated> {
    gates.iter().min_by_key(|gated| (gated.limit, *gated.key.as_bytes()))
}

/// Whether a task that needs places at all of these stays in the line while it runs.
pub(crate) fn keeps(gates: &[Gated]) -> bool {
    home(gates).is_some_and(|home| home.limit.get() <= KEEPS_UP_TO)
}

/// One that may wait in a line: what its record says of that.
#[derive(Clone, Debug)]
pub struct Waiting<'a> {
    pub owner: Owner,
    pub incarnation: Incarnation,
    pub queue: &'a QueueName,
    pub priority: Priority,
    pub requires: &'a [Capability],
    pub gates: &'a [Gated],
    /// When it was scheduled, and with that its limits.
    pub created_at: Timestamp,
    pub position: Option<Position>,
}

impl Waiting<'_> {
    /// The mark of its branch, whether it waits or not.
    pub fn mark(&self) -> u32 {
        mark_of(self.queue, self.required())
    }

    fn required(&self) -> u32 {
        self.requires.iter().fold(0, |all, one| all ^ digest(one.as_str()))
    }

    /// The limit that it asks of a key.
    pub fn asked_limit(&self, gate: &GateId) -> Option<AskedLimit> {
        let here = self.gates.iter().find(|one| GateId::from(&one.key) == *gate)?;
        Some(AskedLimit { limit: here.limit, asked_at: self.created_at })
    }

    /// What it writes to come to its line, and the limit that it asks of that key.
    fn enters(&self, now: Timestamp) -> Option<(GateId, Waiter, AskedLimit)> {
        let (gate, waiter) = self.item(now)?;
        let limit = self.asked_limit(&gate)?;
        Some((gate, waiter, limit))
    }

    /// The key in whose line it waits, and its item there; `None` if it doesn't wait.
    pub fn item(&self, now: Timestamp) -> Option<(GateId, Waiter)> {
        let (position, home) = (self.position?, home(self.gates)?);
        let others = self.gates.iter().filter(|gated| gated.key != home.key);
        let others = others.map(|gated| GateId::from(&gated.key)).collect();
        let required = self.required();
        let waiter = Waiter {
            owner: self.owner.clone(),
            incarnation: self.incarnation,
            branch: Branch { queue: self.queue.clone(), others, required },
            priority: self.priority,
            position,
            written_at: now,
            home: None,
        };
        Some((GateId::from(&home.key), waiter))
    }
}

/// What is written when a record comes to a line or leaves it, and who must be told of it.
#[derive(Debug, Default)]
pub(crate) struct Move {
    entered: Option<(GateId, Waiter, AskedLimit)>,
    left: Option<(GateId, Waiter)>,
}

impl Move {
    /// From what the record was to what it becomes.
    pub(crate) fn between(before: Option<&Waiting<'_>>, after: &Waiting<'_>, now: Timestamp) -> Self {
        let position = before.and_then(|before| before.position);
        if position == after.position {
            return Self::default();
        }
        Self { entered: after.enters(now), left: before.and_then(|before| before.item(now)) }
    }

    /// The same position once more, in case its item was lost.
    pub(crate) fn again(waiting: &Waiting<'_>, now: Timestamp) -> Self {
        Self { entered: waiting.enters(now), left: None }
    }

    /// Adds its writes and its effect. The item is there before the record says so, and until the record says otherwise.
    pub(crate) fn add_to(self, writes: &mut Vec<Write>, effects: &mut Vec<Effect>) {
        if let Some((gate, waiter, limit)) = self.entered {
            writes.insert(0, enter(gate.clone(), waiter.clone()));
            effects.push(Effect::CameToLine { gate, waiter: Box::new(waiter), limit });
        }
        writes.extend(self.left.map(|(gate, waiter)| Write::DeleteWaiter { gate, waiter }));
    }
}

/// The write that adds an item to a line.
pub fn enter(gate: GateId, waiter: Waiter) -> Write {
    let expires_at = waiter.written_at.plus(WAITER_KEPT);
    Write::PutWaiter { gate, waiter, expires_at }
}

//! Why no message leads to a record that could go on: what carries it instead.

use serde::{Deserialize, Serialize};

use crate::gate::Position;

/// What carries a record whose message was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ParkedFields", into = "ParkedFields")]
pub enum Parked {
    /// It has a message, or the tick will send one.
    #[default]
    No,
    /// Its queue or its execution is paused. The resume sends another message.
    Paused,
    /// It is in the line of a key: whoever gives a place to it sends it a message. A task may stay there while its attempt
    /// runs.
    InLine(Position),
}

/// As it is stored: a flag, or the position.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ParkedFields {
    Paused(bool),
    InLine(Position),
}

impl From<ParkedFields> for Parked {
    fn from(fields: ParkedFields) -> Self {
        match fields {
            ParkedFields::Paused(true) => Self::Paused,
            ParkedFields::Paused(false) => Self::No,
            ParkedFields::InLine(position) => Self::InLine(position),
        }
    }
}

impl From<Parked> for ParkedFields {
    fn from(parked: Parked) -> Self {
        match parked {
            Parked::No => Self::Paused(false),
            Parked::Paused => Self::Paused(true),
            Parked::InLine(position) => Self::InLine(position),
        }
    }
}

impl Parked {
    /// Whether a message should lead to the record.
    pub const fn is_no(&self) -> bool {
        match self {
            Self::No => true,
            Self::Paused | Self::InLine(_) => false,
        }
    }

    /// Whether the end of a pause sends its message.
    pub const fn is_paused(self) -> bool {
        match self {
            Self::Paused => true,
            Self::No | Self::InLine(_) => false,
        }
    }

    /// The same for a record that may not start yet, so that it can't be in a line.
    #[must_use]
    pub const fn out_of_line(self) -> Self {
        match self {
            Self::No | Self::InLine(_) => Self::No,
            Self::Paused => Self::Paused,
        }
    }

    /// Its position, if it is in a line.
    pub const fn in_line(self) -> Option<Position> {
        match self {
            Self::InLine(position) => Some(position),
            Self::No | Self::Paused => None,
        }
    }
}

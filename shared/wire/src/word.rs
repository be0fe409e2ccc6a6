//! Enumerations: values that are written as one of a few words.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tickover_core::cron::plan::{Missed, Overlap};
use tickover_core::cron::run::Skip;
use tickover_core::execution::command::StartPolicy;
use tickover_core::execution::{DeadlineKind, ExecutionStatus, ParentClosePolicy};
use tickover_core::flow::{OnConflict, Priority};
use tickover_core::operation::Action;
use tickover_core::retry::Jitter;
use tickover_core::task::Status;
use tickover_core::timeout::{ExpiredKind, TimeoutKind};

use crate::answer::{
    AttemptOutcome, CancelOutcome, CauseCategory, CronStatus, Health, OperationStatus, RunState, WaitKind,
};
use crate::request::{OnTimeout, TimeoutScope};

/// An enumeration whose values are written as words.
pub trait Words: Copy + Eq + fmt::Debug + 'static {
    /// Its name in the API's document.
    const NAME: &'static str;
    /// All values, in the order of their presentation to people.
    const ALL: &'static [Self];

    /// The word of a value.
    fn as_word(&self) -> &'static str;

    /// The value with this word.
    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.as_word() == word)
    }
}

/// A value of an enumeration in a request. An unknown value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<T>(pub T);

/// A value of an enumeration in an answer. An unknown value is kept: a newer server may have more values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenEnum<T> {
    /// A value that this version knows.
    Known(T),
    /// Another value, as its word.
    Other(String),
}

impl<T: Words> OpenEnum<T> {
    /// The value, if this version knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Other(_) => None,
        }
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.as_word(),
            Self::Other(word) => word,
        }
    }
}

impl<T> From<T> for Word<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Words> From<T> for OpenEnum<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Words> fmt::Display for OpenEnum<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_word())
    }
}

impl<T: Words> Serialize for OpenEnum<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOf<T>(PhantomData<T>);

        impl<T: Words> Visitor<'_> for OneOf<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let words: Vec<_> = T::ALL.iter().map(|value| format!("\"{}\"", value.as_word())).collect();
                formatter.write_str(&words.join(" or "))
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
                T::of_word(word).ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
            }
        }

        deserializer.deserialize_str(OneOf(PhantomData)).map(Self)
    }
}

impl<'de, T: Words> Deserialize<'de> for OpenEnum<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(T::of_word(&word).map_or(Self::Other(word), Self::Known))
    }
}

/// Implements [`Words`] for types of the core, with the core's names of the values.
macro_rules! of_core {
    ($($of:ty, $name:literal, $all:expr, $word:expr;)*) => {$(
        impl Words for $of {
            const NAME: &'static str = $name;
            const ALL: &'static [Self] = &$all;

            fn as_word(&self) -> &'static str {
                let word: fn($of) -> &'static str = $word;
                word(*self)
            }
        }
    )*};
}

of_core! {
    Status, "TaskStatus", Self::ALL, Status::as_str;
    ExecutionStatus, "ExecutionStatus", Self::ALL, ExecutionStatus::as_str;
    TimeoutKind, "TimeoutKind",
        [Self::ScheduleToClose, Self::ScheduleToStart, Self::Heartbeat, Self::StartToClose], TimeoutKind::as_str;
    ExpiredKind, "StepTimeoutKind", [
        Self::ScheduleToClose,
        Self::ScheduleToStart,
        Self::Heartbeat,
        Self::StartToClose,
        Self::Execution,
        Self::Run,
    ], ExpiredKind::as_str;
    DeadlineKind, "DeadlineKind", [Self::Execution, Self::Run], DeadlineKind::as_str;
    Overlap, "Overlap", Self::ALL, Overlap::as_str;
    Missed, "Missed", Self::ALL, Missed::as_str;
    Skip, "SkipReason", [Self::Overlap, Self::Missed, Self::Full, Self::Dropped], Skip::as_str;
    Jitter, "Jitter", [Self::None, Self::Full], |jitter| match jitter {
        Jitter::None => "none",
        Jitter::Full => "full",
    };
    StartPolicy, "StartPolicy", [Self::UseExisting, Self::Reject], |policy| match policy {
        StartPolicy::UseExisting => "use_existing",
        StartPolicy::Reject => "reject_duplicate",
    };
    Priority, "Priority", Self::ALL, Priority::as_str;
    OnConflict, "OnConflict", Self::ALL, OnConflict::as_str;
    Action, "OperationAction", Self::ALL, Action::as_str;
    ParentClosePolicy, "ParentClosePolicy", [Self::Abandon, Self::RequestCancel, Self::Terminate], |policy| {
        match policy {
            ParentClosePolicy::Abandon => "abandon",
            ParentClosePolicy::RequestCancel => "request_cancel",
            ParentClosePolicy::Terminate => "terminate",
        }
    };
}

/// Aliases, so that the derived schemas of the API's document can name these types.
macro_rules! aliases {
    ($of:ident: $($name:ident = $words:ty;)*) => {$(
        #[doc = concat!("[`", stringify!($of), "`] of these words.")]
        pub type $name = $of<$words>;
    )*};
}

aliases! {
    Word:
    OverlapWord = Overlap;
    MissedWord = Missed;
    StartPolicyWord = StartPolicy;
    JitterWord = Jitter;
    TimeoutScopeWord = TimeoutScope;
    OnTimeoutWord = OnTimeout;
    ActionWord = Action;
    PriorityWord = Priority;
    OnConflictWord = OnConflict;
    TaskStatusWord = Status;
    ExecutionStatusWord = ExecutionStatus;
}

aliases! {
    OpenEnum:
    OpenTaskStatus = Status;
    OpenExecutionStatus = ExecutionStatus;
    OpenTimeoutKind = TimeoutKind;
    OpenStepTimeout = ExpiredKind;
    OpenOnTimeout = OnTimeout;
    OpenDeadlineKind = DeadlineKind;
    OpenOverlap = Overlap;
    OpenMissed = Missed;
    OpenParentClose = ParentClosePolicy;
    OpenAttemptOutcome = AttemptOutcome;
    OpenCancelOutcome = CancelOutcome;
    OpenHealth = Health;
    OpenWaitKind = WaitKind;
    OpenCauseCategory = CauseCategory;
    OpenCronStatus = CronStatus;
    OpenRunState = RunState;
    OpenAction = Action;
    OpenPriority = Priority;
    OpenOperationStatus = OperationStatus;
}

/// Defines enumerations that only the API has.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $value,)*
        }

        impl $crate::Words for $name {
            const NAME: &'static str = stringify!($name);
            const ALL: &'static [Self] = &[$(Self::$value),*];

            fn as_word(&self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }
    )*};
}

pub(crate) use words;

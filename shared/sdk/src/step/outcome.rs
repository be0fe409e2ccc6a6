//! How a step ends: with a result, with its own error, or by the framework.

use std::fmt;

use serde::{Deserialize, Serialize};
use tickover_core::timeout::Expired;

use crate::error::{Failure, failure_of};

/// Why a step has no result. `E` is the step's own error. All other variants come from the framework.
///
/// `?` converts it into an [`Error`](crate::Error) that has the step's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepError<E> {
    /// The step failed with its own error, which isn't retried.
    Failed {
        /// The step's name in the run.
        step: String,
        /// The step's error.
        error: E,
    },
    /// The step used all attempts of its policy. The last one failed with the step's own error.
    RetryExhausted {
        /// The step's name in the run.
        step: String,
        /// The number of attempts, including the first.
        attempts: u32,
        /// The error of the last attempt.
        last_error: E,
    },
    /// The step timed out: its `timeout` passed, which is final, or its last attempt timed out. A timeout of an attempt
    /// (`attempt_timeout`, `heartbeat`) is the last one if no attempt is left or if `on_timeout` is `terminal`. There
    /// is no error of the step's own in this case, so it isn't [`StepError::RetryExhausted`], even if earlier attempts
    /// failed.
    TimedOut {
        /// The step's name in the run.
        step: String,
        /// Which time limit passed, and when. Absent in results of earlier versions.
        #[serde(default)]
        expired: Option<Expired>,
        /// The last failure of its attempts, with its message cut: that for which there was no time to try again, or one
        /// before the attempt that ran too long. Of a remote step, an error of its own type is JSON under the code
        /// `step_error`.
        #[serde(default)]
        last_error: Option<Failure>,
    },
    /// The deadline of the run or of the execution leaves no time for the step.
    DeadlineExceeded {
        /// The step's name in the run.
        step: String,
    },
    /// The step was cancelled: by an operator, because it lost a race, or by an attempt's timeout with `on_timeout =
    /// "cancel"`.
    Cancelled {
        /// The step's name in the run.
        step: String,
        /// The time limit that cancelled it, if one did.
        #[serde(default)]
        expired: Option<Expired>,
    },
    /// The step has ended, but its result isn't known: the workflow didn't read it within the retention time, and it
    /// was deleted. The step may have done its work. `retry_step` of [`Handle`](crate::client::Handle) runs it again.
    ResultExpired {
        /// The step's name in the run.
        step: String,
    },
    /// The step failed, but not with an error of its own type: a panic, a worker that was lost too often or doesn't
    /// know the type, or a result that can't be serialised.
    Broken {
        /// The step's name in the run.
        step: String,
        /// The number of attempts, including the first.
        attempts: u32,
        /// What went wrong.
        failure: Failure,
    },
    /// Its stored result doesn't fit the type that the code expects.
    Unreadable {
        /// The step's name in the run.
        step: String,
        /// The type that the code expects.
        type_name: String,
        /// The field that doesn't fit, and why.
        problem: String,
    },
    /// The step can't be run: an invalid option, a name that is used twice, or an argument that can't be serialised.
    Invalid {
        /// The step's name in the run.
        step: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl<E> StepError<E> {
    /// The step's name in the run.
    pub fn step(&self) -> &str {
        match self {
            Self::Failed { step, .. }
            | Self::RetryExhausted { step, .. }
            | Self::TimedOut { step, .. }
            | Self::DeadlineExceeded { step }
            | Self::Cancelled { step, .. }
            | Self::ResultExpired { step }
            | Self::Broken { step, .. }
            | Self::Unreadable { step, .. }
            | Self::Invalid { step, .. } => step,
        }
    }

    /// Whether it is the step's own error, which isn't retried.
    pub fn is_business(&self) -> bool {
        self.business().is_some()
    }

    /// Whether there were several attempts and none is left.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::RetryExhausted { .. } => true,
            Self::Broken { attempts, .. } => *attempts > 1,
            Self::Failed { .. }
            | Self::TimedOut { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled { .. }
            | Self::ResultExpired { .. }
            | Self::Unreadable { .. }
            | Self::Invalid { .. } => false,
        }
    }

    /// The step's own error that isn't retried. `None` if the framework ended the step, or if its retries are exhausted;
    /// [`StepError::own`] has the last error then too.
    pub fn business(&self) -> Option<&E> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::RetryExhausted { .. }
            | Self::TimedOut { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled { .. }
            | Self::ResultExpired { .. }
            | Self::Broken { .. }
            | Self::Unreadable { .. }
            | Self::Invalid { .. } => None,
        }
    }

    /// The step's own error, or `self` if [`StepError::business`] is `None`.
    pub fn into_business(self) -> Result<E, Self> {
        match self {
            Self::Failed { error, .. } => Ok(error),
            other @ (Self::RetryExhausted { .. }
            | Self::TimedOut { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled { .. }
            | Self::ResultExpired { .. }
            | Self::Broken { .. }
            | Self::Unreadable { .. }
            | Self::Invalid { .. }) => Err(other),
        }
    }

    /// The step's own error, whether or not it was retried: that of the only attempt, or of the last one. `None` if the
    /// framework ended the step.
    pub const fn own(&self) -> Option<&E> {
        match self {
            Self::Failed { error, .. } | Self::RetryExhausted { last_error: error, .. } => Some(error),
            Self::TimedOut { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled { .. }
            | Self::ResultExpired { .. }
            | Self::Broken { .. }
            | Self::Unreadable { .. }
            | Self::Invalid { .. } => None,
        }
    }

    /// The step's own error, or `self` if [`StepError::own`] is `None`.
    ///
    /// # Errors
    /// `self`.
    pub fn into_own(self) -> Result<E, Self> {
        match self {
            Self::Failed { error, .. } | Self::RetryExhausted { last_error: error, .. } => Ok(error),
            other @ (Self::TimedOut { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled { .. }
            | Self::ResultExpired { .. }
            | Self::Broken { .. }
            | Self::Unreadable { .. }
            | Self::Invalid { .. }) => Err(other),
        }
    }

    /// Converts the step's own error.
    pub fn map<F>(self, turn: impl FnOnce(E) -> F) -> StepError<F> {
        match self {
            Self::Failed { step, error } => StepError::Failed { step, error: turn(error) },
            Self::RetryExhausted { step, attempts, last_error } => {
                StepError::RetryExhausted { step, attempts, last_error: turn(last_error) }
            }
            Self::TimedOut { step, expired, last_error } => StepError::TimedOut { step, expired, last_error },
            Self::DeadlineExceeded { step } => StepError::DeadlineExceeded { step },
            Self::Cancelled { step, expired } => StepError::Cancelled { step, expired },
            Self::ResultExpired { step } => StepError::ResultExpired { step },
            Self::Broken { step, attempts, failure } => StepError::Broken { step, attempts, failure },
            Self::Unreadable { step, type_name, problem } => {
                StepError::Unreadable { step, type_name, problem }
            }
            Self::Invalid { step, problem } => StepError::Invalid { step, problem },
        }
    }
}

impl<E: fmt::Display + Serialize> StepError<E> {
    /// Code and message. The step's own error keeps its code, also after several attempts.
    pub fn failure(&self) -> Failure {
        let code = match self {
            Self::Failed { error, .. } | Self::RetryExhausted { last_error: error, .. } => {
                return failure_of(error);
            }
            Self::Broken { failure, .. } => return failure.clone(),
            Self::TimedOut { .. } => "timed_out",
            Self::DeadlineExceeded { .. } => "deadline_exceeded",
            Self::Cancelled { .. } => "cancelled",
            Self::ResultExpired { .. } => "result_expired",
            Self::Unreadable { .. } => "unreadable_result",
            Self::Invalid { .. } => "invalid_step",
        };
        Failure::new(code, self.to_string())
    }
}

impl<E: fmt::Display> fmt::Display for StepError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "step `{}` ", self.step())?;
        match self {
            Self::Failed { error, .. } => write!(formatter, "failed: {error}"),
            Self::RetryExhausted { attempts, last_error, .. } => {
                write!(formatter, "failed {attempts} times, the last time with: {last_error}")
            }
            Self::TimedOut { expired, last_error, .. } => {
                formatter.write_str("timed out")?;
                if let Some(Expired { kind, deadline_at }) = expired {
                    write!(formatter, " ({}) at {}", kind.as_str(), deadline_at.to_rfc3339())?;
                }
                last_error.iter().try_for_each(|error| write!(formatter, "; its last error: {error}"))
            }
            Self::DeadlineExceeded { .. } => {
                formatter.write_str("has no time left before the deadline of its run or execution")
            }
            Self::Cancelled { .. } => formatter.write_str("was cancelled"),
            Self::ResultExpired { .. } => {
                formatter.write_str("has ended, but its result was deleted before the workflow read it")
            }
            Self::Broken { failure, .. } => write!(formatter, "ended abnormally: {failure}"),
            Self::Unreadable { type_name, problem, .. } => {
                write!(formatter, "has a stored result that doesn't fit `{type_name}`: {problem}")
            }
            Self::Invalid { problem, .. } => write!(formatter, "can't be run: {problem}"),
        }
    }
}

/// Methods for a step's outcome, in addition to `?`. They replace only the step's own error: a timeout or a
/// cancellation is passed on.
pub trait StepResult<T, E>: Sized {
    /// Replaces the step's own error with this value.
    fn or_value(self, fallback: T) -> Result<T, StepError<E>>;

    /// Replaces the step's own error with the closure's value.
    fn or_else_value(self, fallback: impl FnOnce(E) -> T) -> Result<T, StepError<E>>;

    /// Separates the step's own result or error from the framework's error.
    fn answer(self) -> Result<Result<T, E>, StepError<E>>;
}

impl<T, E> StepResult<T, E> for Result<T, StepError<E>> {
    fn or_value(self, fallback: T) -> Self {
        self.or_else_value(|_| fallback)
    }

    fn or_else_value(self, fallback: impl FnOnce(E) -> T) -> Self {
        self.answer().map(|answer| answer.unwrap_or_else(fallback))
    }

    fn answer(self) -> Result<Result<T, E>, StepError<E>> {
        match self {
            Ok(value) => Ok(Ok(value)),
            Err(error) => error.into_business().map(Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Result<u32, StepError<Failure>> {
        Err(StepError::Failed { step: "charge".to_owned(), error: Failure::new("declined", "no funds") })
    }

    fn timed_out() -> Result<u32, StepError<Failure>> {
        Err(StepError::TimedOut { step: "charge".to_owned(), expired: None, last_error: None })
    }

    fn exhausted() -> Result<u32, StepError<Failure>> {
        let last_error = Failure::new("declined", "no funds");
        Err(StepError::RetryExhausted { step: "charge".to_owned(), attempts: 4, last_error })
    }

    #[test]
    fn a_fallback_replaces_the_steps_own_errors_only() {
        assert_eq!(failed().or_value(7), Ok(7));
        assert_eq!(failed().or_else_value(|error| u32::from(error.code == "declined")), Ok(1));
        for framework in [timed_out(), exhausted()] {
            assert_eq!(framework.clone().or_value(7), framework);
            assert_eq!(framework.clone().or_else_value(|_| 7), framework);
            assert!(!framework.unwrap_err().is_business());
        }
        assert_eq!(Ok::<_, StepError<Failure>>(1).or_value(7), Ok(1));
    }

    #[test]
    fn the_steps_own_error_is_there_whether_or_not_it_was_retried() {
        for own in [failed(), exhausted()] {
            let error = own.unwrap_err();
            assert_eq!(error.own().map(|error| error.code.as_str()), Some("declined"));
            assert_eq!(error.into_own().map(|error| error.code), Ok("declined".to_owned()));
        }
        assert_eq!(timed_out().unwrap_err().own(), None);
        assert_eq!(timed_out().unwrap_err().into_own(), Err(timed_out().unwrap_err()));
    }

    #[test]
    fn the_steps_own_outcome_is_separated_from_the_frameworks_error() {
        assert_eq!(failed().answer().unwrap().unwrap_err().code, "declined");
        assert_eq!(timed_out().answer(), Err(timed_out().unwrap_err()));
    }

    #[test]
    fn each_end_by_the_framework_has_a_code_and_the_steps_own_error_keeps_its_own() {
        let step = || "charge".to_owned();
        let broken = Failure::new("panic", "it fell");
        for (error, code) in [
            (failed().unwrap_err(), "declined"),
            (exhausted().unwrap_err(), "declined"),
            (timed_out().unwrap_err(), "timed_out"),
            (StepError::DeadlineExceeded { step: step() }, "deadline_exceeded"),
            (StepError::Cancelled { step: step(), expired: None }, "cancelled"),
            (StepError::Broken { step: step(), attempts: 1, failure: broken }, "panic"),
            (StepError::ResultExpired { step: step() }, "result_expired"),
            (
                StepError::Unreadable { step: step(), type_name: "u32".to_owned(), problem: String::new() },
                "unreadable_result",
            ),
            (StepError::Invalid { step: step(), problem: String::new() }, "invalid_step"),
        ] {
            assert_eq!(error.failure().code, code);
        }
    }

    #[test]
    fn every_outcome_names_its_step() {
        assert_eq!(timed_out().unwrap_err().to_string(), "step `charge` timed out");
        let last_error = Some(Failure::new("declined", "no funds"));
        let late = StepError::<Failure>::TimedOut { step: "charge".to_owned(), expired: None, last_error };
        assert_eq!(late.to_string(), "step `charge` timed out; its last error: declined: no funds");
        assert_eq!(
            exhausted().unwrap_err().to_string(),
            "step `charge` failed 4 times, the last time with: declined: no funds"
        );
        assert_eq!(exhausted().unwrap_err().failure(), Failure::new("declined", "no funds"));
        assert_eq!(timed_out().unwrap_err().failure().code, "timed_out");
    }
}

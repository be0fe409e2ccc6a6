//! Errors as workflows see them: the error of a body, and the cause of a failed execution.
//!
//! Decides nothing about retries: a failed step has used all its attempts before its error gets here.

mod code;
mod failure;

use std::error::Error as StdError;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use failure::{DEFAULT_CODE, Failure};

use crate::step::StepError;

/// The result of a workflow's body.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error, for bodies of workflows, and for steps that need no error type of their own. `?` converts every
/// [`std::error::Error`] into it. `?` also converts a step's [`StepError`] and keeps the step's name.
///
/// Like all types that can be made from any error, it doesn't implement [`std::error::Error`] itself. It is serialised
/// as its [`Failure`], without its origin and source.
pub struct Error {
    failure: Failure,
    origin: Origin,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Where an error comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Body,
    Step { name: String, retries_exhausted: bool },
}

impl Error {
    /// Creates an error with a code for programs and a message for people.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure::new(code, message).into()
    }

    /// Creates an error with a message only; its code is [`DEFAULT_CODE`].
    pub fn msg(message: impl Into<String>) -> Self {
        Self::new(DEFAULT_CODE, message)
    }

    /// Creates the error of a step, with the step's name.
    pub(crate) fn of_step(name: impl Into<String>, failure: Failure, retries_exhausted: bool) -> Self {
        Self { failure, origin: Origin::Step { name: name.into(), retries_exhausted }, source: None }
    }

    /// Replaces the code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.failure.code = code.into();
        self
    }

    /// The code: what kind of error it is.
    pub fn code(&self) -> &str {
        &self.failure.code
    }

    /// The message, for people.
    pub fn message(&self) -> &str {
        &self.failure.message
    }

    /// Code and message.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// The step that it came from; `None` if the body failed by itself.
    pub fn step(&self) -> Option<&str> {
        match &self.origin {
            Origin::Body => None,
            Origin::Step { name, .. } => Some(name),
        }
    }

    /// The error that it was converted from; `None` if it came from a step or was made from texts.
    pub fn source(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// The cause that `on_failure` would get.
    pub fn cause(&self) -> Cause {
        match &self.origin {
            Origin::Body => Cause::Body(self.failure.clone()),
            Origin::Step { name, retries_exhausted } => Cause::Step {
                name: name.clone(),
                error: self.failure.clone(),
                retries_exhausted: *retries_exhausted,
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(formatter)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Body => self.failure.fmt(formatter),
            Origin::Step { name, .. } => write!(formatter, "step `{name}`: {}", self.failure),
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let failure = Failure::new(DEFAULT_CODE, failure::with_sources(&error));
        Self { failure, origin: Origin::Body, source: Some(Box::new(error)) }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self { failure, origin: Origin::Body, source: None }
    }
}

impl<E: fmt::Display + Serialize> From<StepError<E>> for Error {
    fn from(error: StepError<E>) -> Self {
        let retries_exhausted = error.is_exhausted();
        Self::of_step(error.step(), error.failure(), retries_exhausted)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        error.failure
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.failure.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Failure::deserialize(deserializer).map(Self::from)
    }
}

/// Code and message of a step's typed error. The message is its text. The code is the name of its variant, or the value
/// of its field `code`, `kind` or `type`, as serde writes them, otherwise [`DEFAULT_CODE`].
pub(crate) fn failure_of<E: fmt::Display + Serialize>(error: &E) -> Failure {
    let code = code::code_of(error).unwrap_or_else(|| DEFAULT_CODE.to_owned());
    let text = error.to_string();
    // The text of a `Failure` or `Error` starts with its code, which isn't repeated.
    let message = text.strip_prefix(&format!("{code}: ")).map_or(text.as_str(), |message| message);
    Failure::new(code, message)
}

/// Why an execution failed: the argument of `on_failure`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A step failed, and the body returned its error.
    Step {
        /// The step's name in the run.
        name: String,
        /// The error of its last attempt.
        error: Failure,
        /// Whether it used all attempts of its policy.
        retries_exhausted: bool,
    },
    /// The body failed by itself.
    Body(Failure),
    /// The execution's deadline passed.
    ExecutionDeadline,
    /// The run's deadline passed.
    RunDeadline,
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { name, error, .. } => write!(formatter, "step `{name}`: {error}"),
            Self::Body(failure) => failure.fmt(formatter),
            Self::ExecutionDeadline => formatter.write_str("the execution's deadline passed"),
            Self::RunDeadline => formatter.write_str("the run's deadline passed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, thiserror::Error)]
    enum PaymentError {
        #[error("the bank said no")]
        Declined,
    }

    fn body_of_a_step(outcome: std::result::Result<(), StepError<PaymentError>>) -> Result<()> {
        outcome?;
        Ok(())
    }

    #[test]
    fn an_error_passed_on_remembers_its_step() {
        let failed = StepError::Failed { step: "charge".to_owned(), error: PaymentError::Declined };
        let error = body_of_a_step(Err(failed)).unwrap_err();
        assert_eq!(error.step(), Some("charge"));
        assert_eq!(
            error.cause(),
            Cause::Step {
                name: "charge".to_owned(),
                error: Failure::new("Declined", "the bank said no"),
                retries_exhausted: false,
            }
        );
    }

    #[test]
    fn an_error_passed_on_remembers_that_retries_are_exhausted() {
        let exhausted = StepError::RetryExhausted {
            step: "charge".to_owned(),
            attempts: 4,
            last_error: PaymentError::Declined,
        };
        let cause = body_of_a_step(Err(exhausted)).unwrap_err().cause();
        assert!(
            matches!(cause, Cause::Step { retries_exhausted: true, error, .. } if error.code == "Declined")
        );
    }

    #[test]
    fn the_bodys_own_error_has_no_step_and_keeps_its_source() {
        let error = Error::from(std::io::Error::other("disk full"));
        assert_eq!(error.step(), None);
        assert_eq!(error.cause(), Cause::Body(Failure::new(DEFAULT_CODE, "disk full")));
        assert!(error.source().is_some());
    }

    #[test]
    fn an_error_can_be_a_steps_error_type() {
        let stored = serde_json::to_string(&Error::new("declined", "no funds")).unwrap();
        let read: Error = serde_json::from_str(&stored).unwrap();
        assert_eq!(read.failure(), &Failure::new("declined", "no funds"));
        assert_eq!(failure_of(&read), Failure::new("declined", "no funds"));
    }
}

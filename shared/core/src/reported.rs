//! What the code of an attempt reports with its heartbeats, for people and for the next attempt.

use crate::payload::Json;

/// The last values that an attempt, or one before it, has reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// How far the work has come, from 0 to 1.
    pub progress: Option<f64>,
    /// A value of the code's own, of at most [`crate::limits::DETAILS_MAX`] bytes.
    pub details: Option<Json>,
}

impl Reported {
    /// These values; where one is absent, the one from before.
    #[must_use]
    pub fn or(self, before: &Self) -> Self {
        Self {
            progress: self.progress.or(before.progress),
            details: self.details.or_else(|| before.details.clone()),
        }
    }
}

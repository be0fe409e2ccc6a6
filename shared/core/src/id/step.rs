//! The names of steps, which have square brackets as well.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::{NameError, STEP_NAME_MAX, check_name, check_reachable, read_name};

/// The name of a step, sleep, wait or captured value within a run. `label[3]` is the fourth of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct StepName(String);

#[cfg(feature = "schema")]
schema!(StepName, r"^(\.{0,2}[A-Za-z0-9_:\[\]-]|\.{3})[A-Za-z0-9._:\[\]-]*$");

impl StepName {
    /// The most characters it may have. Each is one byte.
    pub const MAX: usize = STEP_NAME_MAX;

    /// Checks that the text isn't empty or too long and has only the characters `[A-Za-z0-9._:-]` and square
    /// brackets.
    pub fn parse(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        let plain: String = text.chars().map(|c| if matches!(c, '[' | ']') { '.' } else { c }).collect();
        check_name(&plain, Self::MAX)?;
        check_reachable(&text, &[])?;
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for StepName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for StepName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_name(deserializer, Self::parse)
    }
}

impl From<StepName> for String {
    fn from(name: StepName) -> Self {
        name.0
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

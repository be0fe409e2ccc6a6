//! Cron expressions in a time zone, and the instants that they match, daylight saving time included.
//!
//! The search is in the `croner` crate. It follows Vixie's cron where clocks change: a fixed time that a change
//! skips occurs right after the gap, a fixed time that a change repeats occurs once, and an expression that recurs
//! within the hour continues through both. This module ensures that instants strictly increase; `grammar` defines
//! valid expressions.

mod grammar;

use chrono::{DateTime, Utc};
use croner::parser::{CronParser, Seconds, Year};
use serde::{Deserialize, Serialize};

use super::zone::Zone;
use crate::policy::PolicyError;
use crate::time::Timestamp;

/// Longest expression, in bytes.
pub const EXPRESSION_MAX: usize = 80;

/// A cron expression, and the time zone whose local time it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct CronExpression {
    expression: String,
    zone: Zone,
    pattern: croner::Cron,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(rename = "x")]
    expression: String,
    #[serde(rename = "z")]
    zone: String,
}

impl CronExpression {
    /// Reads an expression and the IANA name of a time zone. The error's path is `cron` or `time_zone`.
    ///
    /// It also refuses an expression that matches no date, such as the 30th of February.
    pub fn parse(expression: &str, time_zone: &str) -> Result<Self, PolicyError> {
        let expression = expression.trim();
        if expression.len() > EXPRESSION_MAX {
            let expected = format!("a cron expression of at most {EXPRESSION_MAX} bytes");
            return Err(PolicyError::new("cron", expected, expression));
        }
        let zone = Zone::named(time_zone.trim()).ok_or_else(|| {
            PolicyError::new("time_zone", "the IANA name of a time zone, such as `Europe/Berlin`", time_zone)
        })?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let pattern = parser.parse(&grammar::normal(expression)?).map_err(|error| {
            PolicyError::new("cron", format!("a cron expression ({})", reason(&error)), expression)
        })?;
        let cron = Self { expression: expression.to_owned(), zone, pattern };
        if cron.after(Timestamp::EPOCH).is_none() {
            let expected = "a cron expression that some date fits";
            return Err(PolicyError::new("cron", expected, expression));
        }
        Ok(cron)
    }

    /// The expression as its caller wrote it.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The time zone's IANA name.
    pub fn time_zone(&self) -> &'static str {
        self.zone.name()
    }

    /// The first instant after `instant`; `None` at the end of the calendar.
    pub fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        // Cron has no fractions of a second.
        let from = self.local(instant.as_millis().div_euclid(1_000))?;
        let found = self.pattern.find_next_occurrence(&from, false).ok()?;
        Some(timestamp(&found)).filter(|found| *found > instant)
    }

    /// The last instant that isn't after `instant`.
    pub fn at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        let from = self.local(instant.as_millis().div_euclid(1_000))?;
        let found = self.pattern.find_previous_occurrence(&from, true).ok()?;
        Some(timestamp(&found)).filter(|found| *found <= instant)
    }

    fn local(&self, epoch_secs: i64) -> Option<DateTime<Zone>> {
        Some(DateTime::<Utc>::from_timestamp(epoch_secs, 0)?.with_timezone(&self.zone))
    }
}

fn timestamp(local: &DateTime<Zone>) -> Timestamp {
    Timestamp::from_millis(local.timestamp().saturating_mul(1_000))
}

/// The parser's error, as the end of a sentence.
fn reason(error: &croner::errors::CronError) -> String {
    let text = error.to_string();
    text.trim_end_matches('.').to_owned()
}

impl TryFrom<Stored> for CronExpression {
    type Error = PolicyError;

    fn try_from(stored: Stored) -> Result<Self, PolicyError> {
        Self::parse(&stored.expression, &stored.zone)
    }
}

impl From<CronExpression> for Stored {
    fn from(cron: CronExpression) -> Self {
        let zone = cron.time_zone().to_owned();
        Self { expression: cron.expression, zone }
    }
}

//! Cron expressions in a time zone, and the instants that they match, daylight saving time included.
//!
//! The search in the calendar is in the `croner` crate, `clock` says what happens where clocks change, and `grammar`
//! defines valid expressions.

mod clock;
mod grammar;

use chrono::{DateTime, Offset as _, SecondsFormat, TimeZone as _};
use croner::parser::{CronParser, Seconds, Year};
use serde::{Deserialize, Serialize};

use super::zone::Zone;
use crate::policy::PolicyError;
use crate::time::Timestamp;
use clock::Clock;

/// Longest expression, in bytes.
pub const EXPRESSION_MAX: usize = 80;

/// A cron expression, and the time zone whose local time it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct CronExpression {
    expression: String,
    zone: Zone,
    pattern: croner::Cron,
    /// Whether neither the minute nor the hour field begins with `*`.
    is_fixed: bool,
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
        let normal = grammar::normal(expression)?;
        let pattern = parser.parse(&normal).map_err(|error| {
            PolicyError::new("cron", format!("a cron expression ({})", reason(&error)), expression)
        })?;
        let is_fixed = grammar::is_fixed(&normal);
        let cron = Self { expression: expression.to_owned(), zone, pattern, is_fixed };
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

    /// An instant as the clocks of its time zone show it, in RFC 3339 with whole seconds and the offset from UTC.
    pub fn local(&self, instant: Timestamp) -> Option<String> {
        let utc = DateTime::from_timestamp_millis(instant.as_millis())?;
        let offset = self.zone.offset_from_utc_datetime(&utc.naive_utc()).fix();
        Some(utc.with_timezone(&offset).to_rfc3339_opts(SecondsFormat::Secs, false))
    }

    /// The first instant after `instant`; `None` at the end of the calendar.
    pub fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        // Cron has no fractions of a second.
        let found = self.clock().after(instant.as_millis().div_euclid(1_000))?;
        Some(timestamp(found)).filter(|found| *found > instant)
    }

    /// The last instant that isn't after `instant`.
    pub fn at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.clock().at_or_before(instant.as_millis().div_euclid(1_000)).map(timestamp)
    }

    const fn clock(&self) -> Clock<'_> {
        Clock { pattern: &self.pattern, zone: &self.zone, is_fixed: self.is_fixed }
    }
}

fn timestamp(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs.saturating_mul(1_000))
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

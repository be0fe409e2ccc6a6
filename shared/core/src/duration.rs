//! Durations in text: `30s`, `1h 30m`, `10 days 1hrs 30m 15 secs`, or integer milliseconds.
//!
//! Owns the grammar, and the one type for a length of time. It never reads a clock: instants are arguments.
//!
//! ```text
//! duration := digits | part (space* part)*      digits alone are milliseconds
//! part     := digits space* unit
//! unit     := ms|milli|millis|millisecond(s) | s|sec|secs|second(s) | m|min|mins|minute(s)
//!           | h|hr|hrs|hour(s) | d|day(s)
//! ```

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Every unit of the grammar, as error messages list them.
pub const UNITS: &str = "ms|milli|millis|millisecond(s), s|sec|secs|second(s), m|min|mins|minute(s), \
                         h|hr|hrs|hour(s), d|day(s)";

/// How many characters of a caller's text an error quotes. Errors are stored and logged, so the rest is cut.
pub const MAX_QUOTED_CHARS: usize = 100;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The longest duration. Instants are `i64` milliseconds, and so are their differences.
const LONGEST: u64 = i64::MAX.cast_unsigned();

/// A length of time in whole milliseconds, from 0 to [`Millis::MAX`]. Serialised as an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Millis(u64);

/// Whether a duration of zero is allowed. A delay may be zero; a timeout may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroRule {
    /// Zero is allowed.
    Allow,
    /// Zero is refused with [`DurationProblem::Zero`].
    Reject,
}

impl Millis {
    /// Zero milliseconds.
    pub const ZERO: Self = Self(0);

    /// The longest duration: `i64::MAX` milliseconds, about 292 million years.
    pub const MAX: Self = Self(LONGEST);

    /// `ms` milliseconds, at most [`Millis::MAX`].
    pub const fn new(ms: u64) -> Self {
        if ms > LONGEST { Self::MAX } else { Self(ms) }
    }

    /// `secs` seconds, at most [`Millis::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self::new(secs.saturating_mul(SECOND))
    }

    /// `days` days of 24 hours, at most [`Millis::MAX`].
    pub const fn from_days(days: u64) -> Self {
        Self::new(days.saturating_mul(DAY))
    }

    /// Milliseconds.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Milliseconds as a signed number. The conversion is exact: [`Millis::MAX`] is `i64::MAX`.
    pub const fn as_i64(self) -> i64 {
        self.0.cast_signed()
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs_floor(self) -> u64 {
        self.0 / SECOND
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, at most [`Millis::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self::new(self.0.saturating_add(other.0))
    }

    /// The difference, at least [`Millis::ZERO`].
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, at most [`Millis::MAX`].
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self::new(self.0.saturating_mul(factor))
    }

    /// Reads a duration above zero. A number without a unit is in milliseconds.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        Self::parse_with(text, ZeroRule::Reject)
    }

    /// Reads a duration that may be zero. A number without a unit is in milliseconds.
    pub fn parse_allowing_zero(text: &str) -> Result<Self, DurationError> {
        Self::parse_with(text, ZeroRule::Allow)
    }

    /// Reads a JSON string in the grammar, or a JSON integer in milliseconds.
    pub fn from_json(value: &Value, zero: ZeroRule) -> Result<Self, DurationError> {
        let read = match value {
            Value::String(text) => return Self::parse_with(text, zero),
            Value::Number(number) => integer_ms(number),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(DurationProblem::NotText)
            }
        };
        read.and_then(|ms| accept(ms, zero))
            .map_err(|problem| DurationError::new(&value.to_string(), problem))
    }

    fn parse_with(text: &str, zero: ZeroRule) -> Result<Self, DurationError> {
        read_text(text).and_then(|ms| accept(ms, zero)).map_err(|problem| DurationError::new(text, problem))
    }
}

impl From<Millis> for u64 {
    fn from(millis: Millis) -> Self {
        millis.0
    }
}

impl From<Millis> for Duration {
    fn from(millis: Millis) -> Self {
        Self::from_millis(millis.0)
    }
}

/// Refuses a number that [`Millis::new`] would cut: Tickover never stores such a number.
impl TryFrom<u64> for Millis {
    type Error = DurationError;

    fn try_from(ms: u64) -> Result<Self, Self::Error> {
        accept(ms, ZeroRule::Allow).map_err(|problem| DurationError::new(&ms.to_string(), problem))
    }
}

/// Writes the largest units first, and omits units that are zero. [`Millis::parse`] reads the text back exactly.
/// Examples: `1h 30m`, `250ms`, `0ms`.
impl fmt::Display for Millis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return formatter.write_str("0ms");
        }
        let mut rest = self.0;
        let mut separator = "";
        for (unit, length) in [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)] {
            let count = rest / length;
            rest %= length;
            if count > 0 {
                write!(formatter, "{separator}{count}{unit}")?;
                separator = " ";
            }
        }
        Ok(())
    }
}

/// A text that isn't a duration, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration: {problem}; the units are {UNITS}")]
pub struct DurationError {
    /// The text, cut to [`MAX_QUOTED_CHARS`].
    pub text: String,
    pub problem: DurationProblem,
}

impl DurationError {
    fn new(text: &str, problem: DurationProblem) -> Self {
        Self { text: excerpt(text), problem }
    }
}

/// Why a text isn't a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationProblem {
    /// Empty, or white space only.
    #[error("it is empty")]
    Empty,
    /// A JSON value that is neither a string nor a number.
    #[error("it is neither a string nor a number")]
    NotText,
    /// A part that doesn't start with a digit.
    #[error("a whole number was expected at `{0}`")]
    NoNumber(String),
    /// A number below zero.
    #[error("it is negative")]
    Negative,
    /// A number with a decimal point or comma.
    #[error("it has a fraction")]
    Fraction,
    /// A number without a unit, although other parts have one; or several numbers without units.
    #[error("the number {0} has no unit")]
    NoUnit(String),
    /// A unit that the grammar doesn't have. Upper case isn't accepted.
    #[error("the unit `{0}` is unknown")]
    UnknownUnit(String),
    /// Zero where zero isn't allowed.
    #[error("it must be longer than zero")]
    Zero,
    /// Longer than [`Millis::MAX`].
    #[error("it is longer than {LONGEST} ms")]
    TooLong,
}

/// The first [`MAX_QUOTED_CHARS`] characters of a caller's text.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(MAX_QUOTED_CHARS).collect()
}

fn accept(ms: u64, zero: ZeroRule) -> Result<Millis, DurationProblem> {
    match zero {
        ZeroRule::Reject if ms == 0 => Err(DurationProblem::Zero),
        ZeroRule::Allow | ZeroRule::Reject if ms > LONGEST => Err(DurationProblem::TooLong),
        ZeroRule::Allow | ZeroRule::Reject => Ok(Millis(ms)),
    }
}

fn integer_ms(number: &serde_json::Number) -> Result<u64, DurationProblem> {
    if let Some(ms) = number.as_u64() {
        return Ok(ms);
    }
    let approximate = number.as_f64().unwrap_or(f64::INFINITY);
    // JSON integers beyond 64 bits arrive as floats without their digits. They are too long, not fractions.
    if approximate < 0.0 {
        Err(DurationProblem::Negative)
    } else if approximate >= TWO_TO_64 {
        Err(DurationProblem::TooLong)
    } else if approximate.fract() == 0.0 {
        // `1.0` is a whole number, like `1`.
        format!("{approximate:.0}").parse().map_err(|_| DurationProblem::TooLong)
    } else {
        Err(DurationProblem::Fraction)
    }
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

fn read_text(text: &str) -> Result<u64, DurationProblem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(DurationProblem::Empty);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| DurationProblem::TooLong);
    }
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = read_part(rest)?;
        total = total.checked_add(part).ok_or(DurationProblem::TooLong)?;
        rest = after.trim_start();
    }
    Ok(total)
}

/// Reads one `<integer><unit>`. Returns its milliseconds and the rest of the text.
fn read_part(text: &str) -> Result<(u64, &str), DurationProblem> {
    let (digits, behind) = split_where(text, |c| !c.is_ascii_digit());
    if digits.is_empty() {
        return Err(match text.strip_prefix(['-', '\u{2212}']) {
            Some(_) => DurationProblem::Negative,
            None => DurationProblem::NoNumber(excerpt(text)),
        });
    }
    if behind.starts_with(['.', ',']) {
        return Err(DurationProblem::Fraction);
    }
    let (unit, after) = split_where(behind.trim_start(), |c| c.is_ascii_digit() || c.is_whitespace());
    if unit.is_empty() {
        return Err(DurationProblem::NoUnit(excerpt(digits)));
    }
    let length = unit_ms(unit).ok_or_else(|| DurationProblem::UnknownUnit(excerpt(unit)))?;
    let count: u64 = digits.parse().map_err(|_| DurationProblem::TooLong)?;
    let part = count.checked_mul(length).ok_or(DurationProblem::TooLong)?;
    Ok((part, after))
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn unit_ms(unit: &str) -> Option<u64> {
    match unit {
        "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => Some(1),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(SECOND),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(MINUTE),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(HOUR),
        "d" | "day" | "days" => Some(DAY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(text: &str) -> DurationProblem {
        Millis::parse(text).expect_err(text).problem
    }

    #[test]
    fn durations_with_units_are_read() {
        for (text, ms) in [
            ("30s", 30 * SECOND),
            ("5m", 5 * MINUTE),
            ("2h", 2 * HOUR),
            ("3d", 3 * DAY),
            ("10h 30 minutes", 10 * HOUR + 30 * MINUTE),
            ("1 hour 10minutes 5s", HOUR + 10 * MINUTE + 5 * SECOND),
            ("1d 5h", DAY + 5 * HOUR),
            ("10 days 1hrs 30m 15 secs", 10 * DAY + HOUR + 30 * MINUTE + 15 * SECOND),
            ("1h30m", HOUR + 30 * MINUTE),
            ("  2 h\t5 s\n", 2 * HOUR + 5 * SECOND),
            ("1h 0m", HOUR),
            ("5s 5s", 10 * SECOND),
            ("007s", 7 * SECOND),
            ("1500", 1_500),
            (" 20 ", 20),
        ] {
            assert_eq!(Millis::parse(text).map(Millis::as_u64), Ok(ms), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_every_unit_is_read() {
        for (units, length) in [
            ("ms milli millis millisecond milliseconds", 1),
            ("s sec secs second seconds", SECOND),
            ("m min mins minute minutes", MINUTE),
            ("h hr hrs hour hours", HOUR),
            ("d day days", DAY),
        ] {
            for unit in units.split(' ') {
                for text in [format!("3{unit}"), format!("3 {unit}")] {
                    assert_eq!(Millis::parse(&text), Ok(Millis(3 * length)), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_text_that_is_no_duration_is_refused_with_its_reason() {
        for (text, expected) in [
            ("", DurationProblem::Empty),
            ("  ", DurationProblem::Empty),
            ("0", DurationProblem::Zero),
            ("0s 0ms", DurationProblem::Zero),
            ("-5s", DurationProblem::Negative),
            ("-5", DurationProblem::Negative),
            ("1h -5m", DurationProblem::Negative),
            ("1.5h", DurationProblem::Fraction),
            ("1,5h", DurationProblem::Fraction),
            ("2.0", DurationProblem::Fraction),
            ("s", DurationProblem::NoNumber("s".into())),
            ("+5s", DurationProblem::NoNumber("+5s".into())),
            (".5s", DurationProblem::NoNumber(".5s".into())),
            ("1d and 5h", DurationProblem::NoNumber("and 5h".into())),
            ("10 20", DurationProblem::NoUnit("10".into())),
            ("1h 30", DurationProblem::NoUnit("30".into())),
            ("5x", DurationProblem::UnknownUnit("x".into())),
            ("5S", DurationProblem::UnknownUnit("S".into())),
            ("5 Minutes", DurationProblem::UnknownUnit("Minutes".into())),
            ("1h, 5m", DurationProblem::UnknownUnit("h,".into())),
            ("2w", DurationProblem::UnknownUnit("w".into())),
            ("5µs", DurationProblem::UnknownUnit("µs".into())),
            ("9223372036854775808", DurationProblem::TooLong),
            ("99999999999999999999", DurationProblem::TooLong),
            ("99999999999999999999s", DurationProblem::TooLong),
            ("18446744073709551615d", DurationProblem::TooLong),
            ("9223372036854775807ms 1ms", DurationProblem::TooLong),
            ("18446744073709551615ms 1ms", DurationProblem::TooLong),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
    }

    #[test]
    fn an_error_quotes_the_text_and_lists_the_units() {
        let message = Millis::parse("5 fortnights").unwrap_err().to_string();
        assert_eq!(
            message,
            "`5 fortnights` is not a duration: the unit `fortnights` is unknown; the units are \
             ms|milli|millis|millisecond(s), s|sec|secs|second(s), m|min|mins|minute(s), h|hr|hrs|hour(s), \
             d|day(s)"
        );
        for text in ["0s", "-1s", "1.5s", "9223372036854775808"] {
            let message = Millis::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{text}`")) && message.ends_with(UNITS), "{message}");
        }
    }

    #[test]
    fn an_error_repeats_at_most_a_hundred_characters() {
        let error = Millis::parse(&"é".repeat(5_000)).unwrap_err();
        assert_eq!(error.text.chars().count(), MAX_QUOTED_CHARS);
        assert_eq!(error.problem, DurationProblem::NoNumber("é".repeat(MAX_QUOTED_CHARS)));
    }

    #[test]
    fn zero_is_read_only_where_it_is_allowed() {
        for text in ["0", "0s", "0d 0ms"] {
            assert_eq!(Millis::parse_allowing_zero(text), Ok(Millis::ZERO), "{text}");
        }
        assert_eq!(Millis::from_json(&json!(0), ZeroRule::Allow), Ok(Millis::ZERO));
        assert_eq!(
            Millis::from_json(&json!(0), ZeroRule::Reject).map_err(|e| e.problem),
            Err(DurationProblem::Zero)
        );
    }

    #[test]
    fn json_numbers_are_milliseconds() {
        for (value, expected) in [
            (json!("1h 30m"), Ok(90 * MINUTE)),
            (json!("250"), Ok(250)),
            (json!(250), Ok(250)),
            (json!(i64::MAX), Ok(LONGEST)),
            (json!(-1), Err(DurationProblem::Negative)),
            (json!(-0.5), Err(DurationProblem::Negative)),
            (json!(1.5), Err(DurationProblem::Fraction)),
            (json!(u64::MAX), Err(DurationProblem::TooLong)),
            (json!(1e20), Err(DurationProblem::TooLong)),
            (json!(null), Err(DurationProblem::NotText)),
            (json!(true), Err(DurationProblem::NotText)),
            (json!(["1s"]), Err(DurationProblem::NotText)),
            (json!({"s": 1}), Err(DurationProblem::NotText)),
        ] {
            let read = Millis::from_json(&value, ZeroRule::Reject);
            assert_eq!(read.map(Millis::as_u64).map_err(|error| error.problem), expected, "{value}");
        }
        let error = Millis::from_json(&json!({"s": 1}), ZeroRule::Reject).unwrap_err();
        assert_eq!(error.text, r#"{"s":1}"#);
    }

    #[test]
    fn a_duration_is_shown_in_text_that_reads_back_exactly() {
        for (ms, text) in [
            (0, "0ms"),
            (250, "250ms"),
            (SECOND, "1s"),
            (90 * MINUTE, "1h 30m"),
            (DAY, "1d"),
            (DAY + 1, "1d 1ms"),
            (2 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND + 6, "2d 3h 4m 5s 6ms"),
            (LONGEST, "106751991167d 7h 12m 55s 807ms"),
        ] {
            assert_eq!(Millis(ms).to_string(), text);
            assert_eq!(Millis::parse_allowing_zero(text), Ok(Millis(ms)));
        }
    }

    #[test]
    fn arithmetic_stays_within_the_longest_and_zero() {
        assert_eq!(Millis::new(u64::MAX), Millis::MAX);
        assert_eq!(Millis::from_secs(u64::MAX), Millis::MAX);
        assert_eq!(Millis::MAX.saturating_add(Millis(1)), Millis::MAX);
        assert_eq!(Millis::MAX.saturating_mul(2), Millis::MAX);
        assert_eq!(Millis(5).saturating_sub(Millis(6)), Millis::ZERO);
        assert_eq!(Millis::from_secs(2).saturating_mul(3), Millis(6_000));
        assert_eq!(Millis(1_999).as_secs_floor(), 1);
        assert_eq!(Millis::from_days(1), Millis(DAY));
        assert_eq!(Millis::MAX.as_i64(), i64::MAX);
        assert_eq!(Duration::from(Millis(1_500)), Duration::from_millis(1_500));
    }

    #[test]
    fn a_duration_is_stored_as_an_integer() {
        assert_eq!(serde_json::to_string(&Millis(1_500)).unwrap(), "1500");
        assert_eq!(serde_json::from_str::<Millis>("1500").unwrap(), Millis(1_500));
        assert!(serde_json::from_str::<Millis>("9223372036854775808").is_err());
        assert!(serde_json::from_str::<Millis>("-1").is_err());
        assert!(serde_json::from_str::<Millis>(r#""1s""#).is_err());
    }
}

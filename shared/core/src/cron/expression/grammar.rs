//! The grammar of cron expressions. The `croner` crate accepts more than this: it takes names of days and months in
//! any field, and skips characters that it doesn't know. So an expression is read here first, and passed on as
//! numbers.
//!
//! | field | numbers | names | beside them |
//! |---|---|---|---|
//! | second (only of six fields) | 0-59 | | |
//! | minute | 0-59 | | |
//! | hour | 0-23 | | |
//! | day of month | 1-31 | | `?`; `L` the last day; `15W` the working day nearest to the 15th; `LW` the last working day |
//! | month | 1-12 | `JAN`-`DEC` | |
//! | day of week | 0-7, Sunday is 0 and 7 | `SUN`-`SAT` | `?`; `FRIL` the month's last Friday; `MON#2` its second Monday |
//!
//! A field is `*`, `*/step`, or a list with commas of numbers, ranges `from-to` and `from-to/step`. A range never
//! goes backwards (but `SAT-SUN` is valid). A step is at least 1 and at most the field's largest number. `?` must be
//! the whole field and means `*`. If both day fields are restricted, an instant that matches either counts. Upper
//! and lower case are the same. Nicknames instead of fields: `@yearly`, `@annually`, `@monthly`, `@weekly`,
//! `@daily`, `@hourly`.

use std::fmt::Write as _;

use crate::policy::PolicyError;

const EXPECTED: &str = "a cron expression of five fields (minute, hour, day of month, month, day of week), of six with \
                        seconds first, or one of @yearly, @annually, @monthly, @weekly, @daily, @hourly";

const NICKNAMES: [(&str, &str); 6] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// Sunday as the end of a range.
const LAST_SUNDAY: u8 = 7;

/// The valid content of a field.
struct Field {
    name: &'static str,
    least: u8,
    most: u8,
    /// Names of its numbers, starting with the least.
    names: &'static [&'static str],
    special: Special,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    None,
    DayOfMonth,
    DayOfWeek,
}

const FIELDS: [Field; 6] = [
    Field { name: "second", least: 0, most: 59, names: &[], special: Special::None },
    Field { name: "minute", least: 0, most: 59, names: &[], special: Special::None },
    Field { name: "hour", least: 0, most: 23, names: &[], special: Special::None },
    Field { name: "day of month", least: 1, most: 31, names: &[], special: Special::DayOfMonth },
    Field { name: "month", least: 1, most: 12, names: &MONTHS, special: Special::None },
    Field { name: "day of week", least: 0, most: LAST_SUNDAY, names: &DAYS, special: Special::DayOfWeek },
];

/// The expression in numbers, or an error that names the wrong field and the reason.
pub(super) fn normal(expression: &str) -> Result<String, PolicyError> {
    let whole = || PolicyError::new("cron", EXPECTED, expression);
    if expression.starts_with('@') {
        let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(expression));
        return known.map(|(_, fields)| (*fields).to_owned()).ok_or_else(whole);
    }
    let texts: Vec<&str> = expression.split_ascii_whitespace().collect();
    let fields = match texts.len() {
        5 => FIELDS.get(1..),
        6 => Some(FIELDS.as_slice()),
        _ => None,
    };
    let fields = fields.ok_or_else(whole)?;
    let read: Result<Vec<String>, PolicyError> =
        fields.iter().zip(texts).map(|(field, text)| field.read(text)).collect();
    Ok(read?.join(" "))
}

/// Whether all times of an expression in numbers are fixed: neither its minute nor its hour begins with `*`.
pub(super) fn is_fixed(normal: &str) -> bool {
    // The hour and the minute are before the three fields of the date.
    normal.split(' ').rev().skip(3).take(2).all(|field| !field.starts_with('*'))
}

impl Field {
    fn read(&self, text: &str) -> Result<String, PolicyError> {
        let has_any = self.special != Special::None && text == "?";
        if text == "*" || has_any {
            return Ok("*".to_owned());
        }
        let items: Vec<&str> = text.split(',').collect();
        let is_alone = items.len() == 1;
        let read: Result<Vec<String>, PolicyError> = items
            .into_iter()
            .map(|item| self.item(item, is_alone).ok_or_else(|| self.error_of(item)))
            .collect();
        Ok(read?.join(","))
    }

    /// An item of a list.
    fn item(&self, item: &str, is_alone: bool) -> Option<String> {
        let item = item.to_ascii_uppercase();
        if let Some(special) = self.special(&item, is_alone) {
            return Some(special);
        }
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (item.as_str(), None),
        };
        let mut text = match (range.split_once('-'), step) {
            // `*/step` must be the whole field.
            (None, Some(_)) if range == "*" && is_alone => "*".to_owned(),
            (None, None) => self.number(range)?.to_string(),
            (None, Some(_)) => return None,
            (Some((from, to)), _) => {
                let (first, last) = (self.number(from)?, self.last(to)?);
                let last = if from == to { first } else { last };
                (first <= last).then(|| format!("{first}-{last}"))?
            }
        };
        if let Some(step) = step {
            write!(text, "/{step}").ok()?;
        }
        Some(text)
    }

    fn special(&self, item: &str, is_alone: bool) -> Option<String> {
        match self.special {
            Special::None => None,
            Special::DayOfMonth if item == "L" => Some(item.to_owned()),
            Special::DayOfMonth if item == "LW" => is_alone.then(|| item.to_owned()),
            Special::DayOfMonth => Some(format!("{}W", self.number(item.strip_suffix('W')?)?)),
            Special::DayOfWeek => match item.split_once('#') {
                Some((day, nth)) if matches!(nth, "1" | "2" | "3" | "4" | "5") => {
                    Some(format!("{}#{nth}", self.number(day)?))
                }
                Some(_) => None,
                None => Some(format!("{}L", self.number(item.strip_suffix('L')?)?)),
            },
        }
    }

    /// A number, or the number of a name.
    fn number(&self, text: &str) -> Option<u8> {
        let by_name = self.names.iter().position(|name| *name == text);
        let number = match by_name {
            Some(place) => self.least.checked_add(u8::try_from(place).ok()?)?,
            None => digits(text)?,
        };
        (self.least..=self.most).contains(&number).then_some(number)
    }

    /// The end of a range. A week may start or end with Sunday.
    fn last(&self, text: &str) -> Option<u8> {
        let is_sunday = self.special == Special::DayOfWeek && DAYS.first() == Some(&text);
        if is_sunday { Some(LAST_SUNDAY) } else { self.number(text) }
    }

    fn step(&self, text: &str) -> Option<u8> {
        digits(text).filter(|step| (1..=self.most).contains(step))
    }

    fn error_of(&self, item: &str) -> PolicyError {
        let Self { name, least, most, names, special } = self;
        let mut expected = format!("in the field {name} numbers from {least} to {most}");
        // Writing to a `String` never fails.
        let _written = match (names.first(), names.last()) {
            (Some(first), Some(last)) => write!(expected, " or names from {first} to {last}"),
            _ if item.bytes().any(|byte| byte.is_ascii_alphabetic()) => {
                write!(expected, " (names belong in month and day of week)")
            }
            _ => Ok(()),
        };
        expected.push_str(match special {
            Special::None => "",
            Special::DayOfMonth => ", `L`, `15W` or `LW`",
            Special::DayOfWeek => ", `FRIL` or `MON#2`",
        });
        let _written = write!(
            expected,
            ", ascending ranges such as `{least}-{most}`, steps from 1 to {most} such as `*/2`, separated by commas"
        );
        PolicyError::new("cron", expected, item)
    }
}

/// A number of one or two digits.
fn digits(text: &str) -> Option<u8> {
    let is_short = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_short.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_table_is_read_and_passed_on_in_numbers() {
        for (expression, expected) in [
            ("* * * * *", "* * * * *"),
            ("05 4 * * *", "5 4 * * *"),
            ("0 9 * * MON-FRI", "0 9 * * 1-5"),
            ("0 9 * jan,Jul-SEP/2 sat-sun", "0 9 * 1,7-9/2 6-7"),
            ("0 0 * * 0,7", "0 0 * * 0,7"),
            ("0 0 * * SUN-TUE", "0 0 * * 0-2"),
            ("0 0 * * SUN-SUN", "0 0 * * 0-0"),
            ("0 0 ? * 5", "0 0 * * 5"),
            ("0 0 1 * ?", "0 0 1 * *"),
            ("0 0 L * *", "0 0 L * *"),
            ("0 0 1,l * *", "0 0 1,L * *"),
            ("0 0 15W * *", "0 0 15W * *"),
            ("0 0 LW * *", "0 0 LW * *"),
            ("0 0 * * FRIL,MON#2", "0 0 * * 5L,1#2"),
            ("*/15 0-23/2 * * *", "*/15 0-23/2 * * *"),
            ("30 0 0 1 1 *", "30 0 0 1 1 *"),
            ("@Daily", "0 0 * * *"),
        ] {
            assert_eq!(normal(expression).unwrap(), expected, "{expression}");
        }
    }

    #[test]
    fn an_item_in_the_wrong_field_or_without_meaning_is_refused_with_the_field_and_the_text() {
        for (expression, field, found) in [
            ("MON * * * *", "minute", "MON"),
            ("0 MON-FRI * * *", "hour", "MON-FRI"),
            ("JAN * * * * *", "second", "JAN"),
            ("0 0 MON * *", "day of month", "MON"),
            ("0 0 * MON *", "month", "MON"),
            ("0 0 * * JAN", "day of week", "JAN"),
            ("0 0 * JANFEB *", "month", "JANFEB"),
            ("0 0 * * MONDAY", "day of week", "MONDAY"),
            ("0 0 * * SUN-SUN/0", "day of week", "SUN-SUN/0"),
            ("60 * * * *", "minute", "60"),
            ("0 24 * * *", "hour", "24"),
            ("0 0 0 * *", "day of month", "0"),
            ("0 0 * 13 *", "month", "13"),
            ("0 0 * * 8", "day of week", "8"),
            ("0 22-2 * * *", "hour", "22-2"),
            ("0 0 * * FRI-MON", "day of week", "FRI-MON"),
            ("*/0 * * * *", "minute", "*/0"),
            ("*/60 * * * *", "minute", "*/60"),
            ("0-30/99 * * * *", "minute", "0-30/99"),
            ("5/10 * * * *", "minute", "5/10"),
            ("/10 * * * *", "minute", "/10"),
            ("*,5 * * * *", "minute", "*"),
            ("1,,2 * * * *", "minute", ""),
            ("1, * * * *", "minute", ""),
            ("+5 * * * *", "minute", "+5"),
            ("005 * * * *", "minute", "005"),
            ("L * * * *", "minute", "L"),
            ("? * * * *", "minute", "?"),
            ("0 0 ?5 * *", "day of month", "?5"),
            ("0 0 1L * *", "day of month", "1L"),
            ("0 0 1,LW * *", "day of month", "LW"),
            ("0 0 32W * *", "day of month", "32W"),
            ("0 0 15WX * *", "day of month", "15WX"),
            ("0 0 * * L", "day of week", "L"),
            ("0 0 * * MON#6", "day of week", "MON#6"),
            ("0 0 * * 1-5#2", "day of week", "1-5#2"),
            ("0 0 * * +MON", "day of week", "+MON"),
        ] {
            let error = normal(expression).unwrap_err();
            assert_eq!((error.path.as_str(), error.found.as_str()), ("cron", found), "{expression}");
            assert!(
                error.expected.contains(&format!("in the field {field} ")),
                "{expression}: {}",
                error.expected
            );
        }
        for expression in ["", "* * * *", "* * * * * * *", "@reboot", "@daily @hourly", "* * * * @daily"] {
            assert_eq!(normal(expression).unwrap_err().path, "cron", "{expression}");
        }
    }
}

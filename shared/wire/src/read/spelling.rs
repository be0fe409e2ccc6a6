//! The three spellings of a length of time: `delay`, and as a whole number `delay_seconds` and `delay_ms`. Only who reads a
//! request knows of them: its type has the first.

use serde_json::value::RawValue;

use super::fault::Fault;

/// The units of numbers, by the ends of their fields' names, in milliseconds.
pub const UNITS: [(&str, u64); 2] = [("_seconds", 1_000), ("_ms", 1)];

/// The requests with such lengths of time, and the names of those.
pub const SPELLED: [(&str, &[&str]); 4] = [
    (
        "ScheduleRequest",
        &["delay", "timeout", "schedule_to_start_timeout", "start_to_close_timeout", "heartbeat_timeout"],
    ),
    (
        "KindDefaults",
        &["timeout", "schedule_to_start_timeout", "start_to_close_timeout", "heartbeat_timeout"],
    ),
    ("StartRequest", &["execution_timeout", "run_timeout", "on_failure_timeout", "delay"]),
    ("CronRequest", &["every", "jitter"]),
];

/// Those of a request's type.
pub(super) fn spelled(request: &str) -> &'static [&'static str] {
    SPELLED.iter().find(|(name, _)| *name == request).map_or(&[], |(_, spelled)| spelled)
}

/// The field that a name is a spelling of, and the unit of its number.
pub(super) fn field_and_unit(name: &str, spelled: &[&'static str]) -> Option<(&'static str, u64)> {
    UNITS.iter().find_map(|(end, unit)| {
        let field = name.strip_suffix(end)?;
        spelled.iter().find(|spelled| **spelled == field).map(|field| (*field, *unit))
    })
}

/// Refuses two spellings of one field.
pub(super) fn only_one_each(fields: &[(String, &RawValue)], spelled: &[&str]) -> Result<(), Fault> {
    for field in spelled {
        let ends = [""].into_iter().chain(UNITS.map(|(end, _)| end));
        let mut given = ends
            .map(|end| format!("{field}{end}"))
            .filter(|spelling| fields.iter().any(|(name, _)| name == spelling));
        if let (Some(one), Some(other)) = (given.next(), given.next()) {
            let fault = Fault::expected(format_args!("only one of {one} and {other}"), "both".to_owned());
            return Err(fault.inside(&other));
        }
    }
    Ok(())
}

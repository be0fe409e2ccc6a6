//! The instants of a plan, with clock changes, intervals and jitter.

use proptest::prelude::*;

use super::fixture::{cron, definition, every, span, t};
use crate::cron::expression::CronExpression;
use crate::cron::plan::{Interval, When};
use crate::duration::Millis;
use crate::id::Incarnation;
use crate::policy::PolicyError;
use crate::time::Timestamp;

/// The first occurrences after an instant, in UTC.
fn coming(when: &When, after: &str, count: usize) -> Vec<String> {
    let next = |at: &Timestamp| when.after(*at, t("00:00:00"));
    let instants = std::iter::successors(next(&t(after)), next).take(count);
    instants.map(|at| at.to_rfc3339()[..19].to_owned()).collect()
}

#[test]
fn a_fixed_time_in_the_hour_that_a_change_skips_comes_right_after_the_gap() {
    // Berlin goes from 02:00 to 03:00 on the 29th of March 2026, at 01:00 UTC.
    let daily = cron("30 2 * * *", "Europe/Berlin");
    let expected = ["2026-03-28T01:30:00", "2026-03-29T01:00:00", "2026-03-30T00:30:00"];
    assert_eq!(coming(&daily, "2026-03-27T12:00:00Z", 3), expected);
}

#[test]
fn a_fixed_time_in_the_hour_that_a_change_repeats_comes_once() {
    // Berlin goes from 03:00 back to 02:00 on the 25th of October 2026, at 01:00 UTC.
    let daily = cron("30 2 * * *", "Europe/Berlin");
    let expected = ["2026-10-24T00:30:00", "2026-10-25T00:30:00", "2026-10-26T01:30:00"];
    assert_eq!(coming(&daily, "2026-10-23T12:00:00Z", 3), expected);
}

#[test]
fn an_expression_that_recurs_within_the_hour_continues_through_every_change() {
    let often = cron("*/30 * * * *", "Europe/Berlin");
    let gap = ["2026-03-29T00:30:00", "2026-03-29T01:00:00", "2026-03-29T01:30:00"];
    assert_eq!(coming(&often, "2026-03-29T00:10:00Z", 3), gap);
    let twice = ["2026-10-25T00:00:00", "2026-10-25T00:30:00", "2026-10-25T01:00:00", "2026-10-25T01:30:00"];
    assert_eq!(coming(&often, "2026-10-24T23:50:00Z", 4), twice);
}

#[test]
fn lists_and_ranges_are_fixed_times_too() {
    for (expression, zone, after, expected) in [
        // Berlin skips the hour from 02:00 on the 28th of March 2027: 01:00 UTC.
        (
            "30 2,14 * * *",
            "Europe/Berlin",
            "2027-03-27T14:00:00Z",
            ["2027-03-28T01:00:00", "2027-03-28T12:30:00"],
        ),
        (
            "0,30 2 * * *",
            "Europe/Berlin",
            "2027-03-27T12:00:00Z",
            ["2027-03-28T01:00:00", "2027-03-29T00:00:00"],
        ),
        (
            "0-59/20 1-3 * * *",
            "Europe/Berlin",
            "2027-03-28T00:41:00Z",
            ["2027-03-28T01:00:00", "2027-03-28T01:20:00"],
        ),
        // New York repeats the hour from 01:00 on the 7th of November 2027: 05:00 and 06:00 UTC.
        (
            "15 1,13 * * *",
            "America/New_York",
            "2027-11-07T00:00:00Z",
            ["2027-11-07T05:15:00", "2027-11-07T18:15:00"],
        ),
        // Lord Howe changes by half an hour: on the 4th of April 2027 at 02:00, 15:00 UTC.
        (
            "15,45 1 * * *",
            "Australia/Lord_Howe",
            "2027-04-03T13:00:00Z",
            ["2027-04-03T14:15:00", "2027-04-03T14:45:00"],
        ),
    ] {
        assert_eq!(coming(&cron(expression, zone), after, 2), expected, "{expression} {zone}");
    }
}

#[test]
fn with_a_star_in_minute_or_hour_an_expression_follows_what_clocks_show() {
    for (expression, after, expected) in [
        // Skipped on the 28th of March, twice on the 31st of October.
        ("*/30 2 * * *", "2027-03-27T12:00:00Z", ["2027-03-29T00:00:00", "2027-03-29T00:30:00"]),
        ("*/30 2 * * *", "2027-10-31T00:10:00Z", ["2027-10-31T00:30:00", "2027-10-31T01:00:00"]),
        ("0 */2 * * *", "2027-10-30T23:00:00Z", ["2027-10-31T00:00:00", "2027-10-31T01:00:00"]),
        // The last Sunday of March has no such hour, in no year from now on.
        ("*/5 2 * 3,10 SUNL", "2027-03-01T00:00:00Z", ["2027-10-31T00:00:00", "2027-10-31T00:05:00"]),
    ] {
        assert_eq!(coming(&cron(expression, "Europe/Berlin"), after, 2), expected, "{expression}");
    }
    assert_eq!(coming(&cron("*/5 2 * 3 SUNL", "Europe/Berlin"), "2027-03-01T00:00:00Z", 1), [""; 0]);
}

/// By trying each minute of the days around changes.
#[test]
fn every_instant_around_a_change_is_found_in_both_directions() {
    const DAYS: [(&str, &str); 4] = [
        ("Europe/Berlin", "2027-03-27T12:00:00Z"),
        ("Europe/Berlin", "2027-10-30T12:00:00Z"),
        ("Australia/Lord_Howe", "2027-04-03T00:00:00Z"),
        ("America/New_York", "2027-11-06T12:00:00Z"),
    ];
    for (zone, begin) in DAYS {
        for expression in ["*/20 1-3 * * *", "7 */2 * * *", "10,40 1,2,3 * * *", "5-55/25 0-23/3 * * *"] {
            let (when, begin) = (cron(expression, zone), t(begin));
            let end = begin.plus(Millis::from_secs(2 * 86_400));
            let next = |at: &Timestamp| when.after(*at, t("00:00:00"));
            let found: Vec<_> =
                std::iter::successors(next(&begin), next).take_while(|at| *at < end).collect();
            for minute in 0..2 * 1_440 {
                let at = begin.plus(Millis::from_secs(minute * 60));
                let (last, coming) = (when.at_or_before(at, t("00:00:00")), when.after(at, t("00:00:00")));
                let expected = found.iter().rev().find(|found| **found <= at);
                assert!(expected.is_none() || last == expected.copied(), "{expression} {zone} {at:?}");
                let expected = found.iter().find(|found| **found > at);
                assert!(expected.is_none() || coming == expected.copied(), "{expression} {zone} {at:?}");
            }
        }
    }
}

#[test]
fn an_expression_is_read_by_the_clocks_of_its_zone() {
    let monday = |zone: &str| coming(&cron("0 9 * * MON", zone), "2026-06-30T00:00:00Z", 1);
    assert_eq!(monday("UTC"), ["2026-07-06T09:00:00"]);
    assert_eq!(monday("America/New_York"), ["2026-07-06T13:00:00"]);
    assert_eq!(monday("Asia/Kolkata"), ["2026-07-06T03:30:00"]);
    assert_eq!(coming(&cron("15 0 9 * * *", "UTC"), "2026-01-01T09:00:14.999Z", 1), ["2026-01-01T09:00:15"]);
    assert_eq!(coming(&cron("0 0 29 2 *", "UTC"), "2026-01-01T00:00:00Z", 1), ["2028-02-29T00:00:00"]);
    assert_eq!(coming(&cron("@daily", "UTC"), "2026-01-01T00:00:00Z", 1), ["2026-01-02T00:00:00"]);
}

#[test]
fn an_interval_counts_from_its_anchor_and_from_nowhere_else() {
    let thirds = every("20s");
    assert_eq!(coming(&thirds, "2025-12-31T12:00:00Z", 1), ["2026-01-01T00:00:20"]);
    assert_eq!(coming(&thirds, "2026-01-01T00:00:20Z", 2), ["2026-01-01T00:00:40", "2026-01-01T00:01:00"]);
    assert_eq!(thirds.at_or_before(t("00:01:19"), t("00:00:00")), Some(t("00:01:00")));
    assert_eq!(thirds.at_or_before(t("00:00:19"), t("00:00:00")), None);
}

#[test]
fn an_expression_without_instants_or_with_errors_is_refused_by_name() {
    let refused = |expression: &str, zone: &str| -> PolicyError {
        CronExpression::parse(expression, zone).unwrap_err()
    };
    for expression in ["", "* * * *", "61 * * * *", "0 0 30 2 *", "@reboot", "every day", "0 0 1 1 * 2030 9"]
    {
        assert_eq!(refused(expression, "UTC").path, "cron", "{expression}");
    }
    let zone = refused("0 9 * * *", "Europe/Atlantis");
    assert_eq!((zone.path.as_str(), zone.found.as_str()), ("time_zone", "Europe/Atlantis"));
    assert!(refused(&"1,".repeat(60), "UTC").expected.contains("80 bytes"));
    for wrong in [Millis::ZERO, Millis::new(999), Millis::new(1_500), Millis::from_days(366)] {
        assert_eq!(Interval::new(wrong).unwrap_err().path, "every", "{wrong}");
    }
}

#[test]
fn a_stored_expression_is_read_back_as_it_was_and_a_broken_one_is_not() {
    let stored = serde_json::to_string(&cron("30 2 * * *", "Europe/Berlin")).unwrap();
    assert_eq!(stored, r#"{"c":{"x":"30 2 * * *","z":"Europe/Berlin"}}"#);
    assert_eq!(serde_json::from_str::<When>(&stored).unwrap(), cron("30 2 * * *", "Europe/Berlin"));
    assert!(serde_json::from_str::<When>(r#"{"c":{"x":"30 25 * * *","z":"UTC"}}"#).is_err());
    assert!(serde_json::from_str::<When>(r#"{"e":1500}"#).is_err());
}

const EXPRESSIONS: [&str; 12] = [
    "15 1,2,13 * * *",
    "*/7 2 * * *",
    "0-40/20 0-3 * * *",
    "30 2 * * *",
    "0 0 * * *",
    "*/15 * * * *",
    "0 */3 * * *",
    "59 23 L * *",
    "30 2-3 * * *",
    "0 1 * * SUN",
    "*/10 * * * * *",
    "0 0 13 * FRI",
];
const ZONES: [&str; 7] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Casablanca",
    "Asia/Kathmandu",
];

fn whens() -> impl Strategy<Value = When> {
    prop_oneof![
        3 => (0..EXPRESSIONS.len(), 0..ZONES.len()).prop_map(|(e, z)| cron(EXPRESSIONS[e], ZONES[z])),
        1 => (1_u64..100_000).prop_map(|secs| every(&format!("{secs}s"))),
    ]
}

/// Any millisecond of six years, which have a dozen clock changes.
fn instants() -> impl Strategy<Value = Timestamp> {
    (0..6 * 365 * 86_400_000_i64).prop_map(|ms| Timestamp::from_millis(t("00:00:00").as_millis() + ms))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn occurrences_increase_and_the_previous_one_is_the_last_that_came(when in whens(), from in instants()) {
        let anchor = t("00:00:00");
        let mut last = from;
        for _ in 0..20 {
            let next = when.after(last, anchor).unwrap();
            prop_assert!(next > last);
            prop_assert_eq!(when.at_or_before(next, anchor), Some(next));
            if let Some(before) = when.at_or_before(next.minus(Millis::new(1)), anchor) {
                prop_assert!(before < next);
                prop_assert_eq!(when.after(before, anchor), Some(next));
            }
            last = next;
        }
    }

    #[test]
    fn jitter_stays_in_its_bounds_keeps_the_order_and_is_the_same_each_time(
        when in whens(), from in instants(), jitter in 1_u64..7_200, seed in any::<[u8; 8]>(),
    ) {
        let (anchor, seed) = (t("00:00:00"), Incarnation::from_bytes(seed));
        let mut plan = definition(when).plan;
        plan.jitter = Millis::from_secs(jitter);
        let mut next = plan.next_after(from, anchor, seed).unwrap();
        for _ in 0..10 {
            prop_assert!(next.starts_at >= next.at);
            prop_assert!(next.starts_at.since(next.at) <= plan.jitter);
            prop_assert_eq!(plan.started_by(next.starts_at, anchor, seed), Some(next));
            let following = plan.next_after(next.at, anchor, seed).unwrap();
            prop_assert!(next.starts_at < following.at);
            next = following;
        }
    }
}

#[test]
fn jitter_spreads_over_all_of_its_length_and_differs_between_crons() {
    let mut plan = definition(every("1h")).plan;
    plan.jitter = span("10m");
    let shares = |seed: u8| -> Vec<u64> {
        let seed = Incarnation::from_bytes([seed; 8]);
        let nexts = (0..200)
            .map(|n| plan.next_after(t("00:00:00").plus(Millis::from_secs(n * 3_600)), t("00:00:00"), seed));
        nexts.map(|next| next.unwrap()).map(|next| next.starts_at.since(next.at).as_u64()).collect()
    };
    let (one, other) = (shares(1), shares(2));
    assert!(one.iter().any(|share| *share < 60_000) && one.iter().any(|share| *share > 540_000), "{one:?}");
    assert!(one.iter().zip(&other).filter(|(one, other)| one != other).count() > 190);
}

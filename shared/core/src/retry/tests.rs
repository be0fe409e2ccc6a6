use super::*;

fn secs(secs: u64) -> Millis {
    Millis::from_secs(secs)
}

fn limited(attempts: u32) -> MaxAttempts {
    MaxAttempts::Limited(NonZeroU32::new(attempts).unwrap())
}

fn read(text: &str) -> RetryPolicy {
    RetryPolicy::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn delays(policy: &RetryPolicy, attempts: u32) -> Vec<u64> {
    (1..=attempts).map(|attempt| policy.delay_before_next(attempt, 7).as_u64()).collect()
}

/// A policy of the maximum size.
fn largest() -> RetryPolicy {
    let codes = (0..MAX_CODES).map(|index| format!("{index}").repeat(MAX_CODES_BYTES / MAX_CODES));
    RetryPolicy {
        max_attempts: limited(u32::MAX),
        delay: Delay::Listed(vec![MAX_DELAY; MAX_LISTED_DELAYS]),
        backoff: 1.0,
        max_delay: Some(MAX_DELAY),
        jitter: Jitter::Full,
        non_retryable: codes.collect(),
    }
}

#[test]
fn without_a_policy_there_is_one_attempt() {
    let policy = RetryPolicy::default();
    assert_eq!(policy, RetryPolicy::none());
    assert!(policy.attempts_left(0) && !policy.attempts_left(1));
    assert_eq!(policy.delay_before_next(1, 0), Millis::ZERO);
}

#[test]
fn delays_double_up_to_the_largest() {
    let policy = RetryPolicy {
        max_attempts: MaxAttempts::Unlimited,
        delay: Delay::Fixed(secs(1)),
        backoff: 2.0,
        max_delay: Some(secs(10)),
        ..RetryPolicy::none()
    };
    assert_eq!(delays(&policy, 6), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
}

#[test]
fn a_fixed_delay_stays_and_a_fractional_backoff_is_rounded() {
    assert_eq!(delays(&RetryPolicy::fixed(3, secs(2)), 3), [2_000, 2_000, 2_000]);
    let with = |backoff| RetryPolicy { backoff, ..RetryPolicy::fixed(9, secs(1)) };
    // 1000 * 1.15 is a little less than 1150 in binary.
    assert_eq!(delays(&with(1.15), 2), [1_000, 1_150]);
    assert_eq!(delays(&with(0.5), 4), [1_000, 500, 250, 125]);
}

#[test]
fn delays_saturate_at_the_limit_and_zero_stays_zero() {
    let with = |backoff, delay| RetryPolicy { backoff, ..RetryPolicy::fixed(9, delay) };
    assert_eq!(with(2.0, secs(1)).delay_before_next(u32::MAX, 0), MAX_DELAY);
    assert_eq!(with(f64::MAX, secs(1)).delay_before_next(3, 0), MAX_DELAY);
    assert_eq!(with(f64::MIN_POSITIVE, secs(1)).delay_before_next(9, 0), Millis::ZERO);
    assert_eq!(with(f64::MAX, Millis::ZERO).delay_before_next(9, 0), Millis::ZERO);
    assert_eq!(with(1.0, Millis::MAX).delay_before_next(1, 0), MAX_DELAY);
    assert_eq!(with(2.0, secs(1)).delay_before_next(0, 0), secs(1));
}

#[test]
fn the_last_listed_delay_repeats_and_the_largest_bounds_it() {
    let listed = Delay::Listed(vec![secs(1), secs(5), secs(60)]);
    let policy = RetryPolicy { max_attempts: MaxAttempts::Unlimited, delay: listed, ..RetryPolicy::none() };
    assert_eq!(delays(&policy, 5), [1_000, 5_000, 60_000, 60_000, 60_000]);
    let bounded = RetryPolicy { max_delay: Some(secs(3)), ..policy };
    assert_eq!(delays(&bounded, 4), [1_000, 3_000, 3_000, 3_000]);
    assert_eq!(bounded.delay_before_next(u32::MAX, 0), secs(3));
}

#[test]
fn attempts_end_at_their_limit() {
    let with = |max_attempts| RetryPolicy { max_attempts, ..RetryPolicy::none() };
    assert!(!with(MaxAttempts::Skip).attempts_left(0));
    assert!(with(limited(3)).attempts_left(2) && !with(limited(3)).attempts_left(3));
    assert!(with(MaxAttempts::Unlimited).attempts_left(u32::MAX));
    assert!(RetryPolicy::fixed(3, secs(2)).attempts_left(3));
    assert!(!RetryPolicy::fixed(3, secs(2)).attempts_left(4));
}

#[test]
fn a_listed_code_is_not_retried() {
    let codes = ["card_declined", "not_found"].map(str::to_owned);
    let policy = RetryPolicy { non_retryable: codes.to_vec(), ..RetryPolicy::fixed(2, secs(1)) };
    assert!(!policy.is_retryable("card_declined") && !policy.is_retryable("not_found"));
    assert!(policy.is_retryable("card") && policy.is_retryable("Not_Found") && policy.is_retryable(""));
}

#[test]
fn the_mixer_gives_the_published_sequence() {
    assert_eq!(splitmix64(0, 1), 0xE220_A839_7B1D_CDAF);
    assert_eq!(splitmix64(0, 2), 0x6E78_9E6A_A1B9_65F4);
    assert_eq!(splitmix64(1_234_567, 1), 6_457_827_717_110_365_317);
    assert_eq!(splitmix64(1_234_567, 2), 3_203_168_211_198_807_973);
}

#[test]
fn jitter_is_deterministic_and_differs_by_task_and_attempt() {
    let policy = RetryPolicy { backoff: 1.0, ..RetryPolicy::exponential(5, secs(1_000)) };
    assert_eq!(policy.delay_before_next(2, 42), policy.delay_before_next(2, 42));
    assert_ne!(policy.delay_before_next(2, 42), policy.delay_before_next(2, 43));
    assert_ne!(policy.delay_before_next(2, 42), policy.delay_before_next(3, 42));
    assert_eq!(RetryPolicy::exponential(5, Millis::ZERO).delay_before_next(2, 42), Millis::ZERO);
}

#[test]
fn full_jitter_is_uniform_between_zero_and_the_delay() {
    let policy = RetryPolicy::exponential(9, secs(10));
    for attempt in 1..=4 {
        let delay = 10_000 << (attempt - 1);
        let drawn: Vec<u64> =
            (0..1_000).map(|seed| policy.delay_before_next(attempt, seed).as_u64()).collect();
        assert!(drawn.iter().all(|ms| *ms <= delay));
        let mean = drawn.iter().sum::<u64>() / 1_000;
        assert!((delay * 40 / 100..=delay * 60 / 100).contains(&mean), "attempt {attempt}: {mean}");
        for tenth in 0..10 {
            let within = drawn.iter().filter(|ms| **ms * 10 / (delay + 1) == tenth).count();
            assert!((60..=140).contains(&within), "attempt {attempt}, tenth {tenth}: {within}");
        }
    }
    let one_ms = RetryPolicy::exponential(1, Millis::new(1));
    let ones = (0..1_000).filter(|seed| one_ms.delay_before_next(1, *seed) == Millis::new(1)).count();
    assert!((400..=600).contains(&ones), "both ends are drawn: {ones}");
}

#[test]
fn a_random_delay_is_never_longer_than_the_largest() {
    let policy = RetryPolicy { max_delay: Some(secs(5)), ..RetryPolicy::exponential(3, secs(2)) };
    let longest = |attempt| (0..1_000).map(|seed| policy.delay_before_next(attempt, seed)).max();
    for (attempt, at_least, at_most) in [(1, 1_900, 2_000), (2, 3_900, 4_000), (3, 4_900, 5_000)] {
        let longest = longest(attempt).unwrap().as_u64();
        assert!((at_least..=at_most).contains(&longest), "attempt {attempt}: {longest}");
    }
}

#[test]
fn short_forms_count_retries_after_the_first_attempt() {
    let bounded = RetryPolicy { max_delay: Some(secs(60)), ..RetryPolicy::exponential(5, secs(1)) };
    for (text, expected) in [
        ("none", RetryPolicy::none()),
        (" none ", RetryPolicy::none()),
        ("fixed(3, 2s)", RetryPolicy::fixed(3, secs(2))),
        ("fixed(3,2000)", RetryPolicy::fixed(3, secs(2))),
        ("fixed(0, 0s)", RetryPolicy::none()),
        (" fixed ( 3 , 1m 30s ) ", RetryPolicy::fixed(3, secs(90))),
        ("exponential(5, 1s)", RetryPolicy::exponential(5, secs(1))),
        ("exponential(5, 1s, 1m)", bounded),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    assert_eq!(read("fixed(3, 2s)").max_attempts, limited(4));
    let exponential = read("exponential(5, 1s)");
    assert_eq!((exponential.max_attempts, exponential.jitter), (limited(6), Jitter::Full));
    assert_eq!(exponential.backoff.to_string(), "2");
}

#[test]
fn a_wrong_short_form_is_refused_with_the_text() {
    for (text, found) in [
        ("", ""),
        ("None", "None"),
        ("forever", "forever"),
        ("fixed", "fixed"),
        ("fixed(3)", "fixed(3)"),
        ("fixed(3, 2s", "fixed(3, 2s"),
        ("fixed(3, 2s, 1m)", "fixed(3, 2s, 1m)"),
        ("none()", "none()"),
        ("exponential(1, 1s, 1m, 1h)", "exponential(1, 1s, 1m, 1h)"),
        ("fixed(, 2s)", ""),
        ("fixed(-1, 2s)", "-1"),
        ("fixed(+1, 2s)", "+1"),
        ("fixed(1.5, 2s)", "1.5"),
        ("fixed(4294967295, 2s)", "4294967295"),
        ("fixed(3, 2x)", "2x"),
        ("fixed(3, 366d)", "366d"),
        ("exponential(3, 1s, 0s)", "0s"),
    ] {
        let error = RetryPolicy::parse(text).expect_err(text);
        assert_eq!((error.path.as_str(), error.found.as_str()), ("", found), "{text}");
    }
}

#[test]
fn a_policy_that_was_not_parsed_has_the_same_limits() {
    let none = RetryPolicy::none();
    assert_eq!(largest().check(), Ok(()));
    for (policy, path) in [
        (RetryPolicy { backoff: f64::NAN, ..none.clone() }, "backoff"),
        (RetryPolicy { backoff: f64::INFINITY, ..none.clone() }, "backoff"),
        (RetryPolicy { delay: Delay::Listed(Vec::new()), ..none.clone() }, "delay"),
        (RetryPolicy { delay: Delay::Listed(vec![Millis::MAX]), ..none.clone() }, "delay[0]"),
        (RetryPolicy { max_delay: Some(Millis::ZERO), ..none.clone() }, "max_delay"),
        (RetryPolicy { non_retryable: vec![String::new()], ..none }, "non_retryable[0]"),
        (RetryPolicy::fixed(1, Millis::MAX), "delay"),
    ] {
        assert_eq!(policy.check().map_err(|error| error.path), Err(path.to_owned()), "{policy:?}");
    }
}

#[test]
fn a_policy_is_stored_compactly_and_read_back() {
    let listed = RetryPolicy {
        max_attempts: MaxAttempts::Unlimited,
        delay: Delay::Listed(vec![secs(1), secs(5)]),
        non_retryable: vec!["bad".to_owned()],
        ..RetryPolicy::none()
    };
    let skip = MaxAttempts::Skip;
    let bounded = RetryPolicy { max_attempts: skip, max_delay: Some(secs(1)), ..RetryPolicy::none() };
    for (policy, stored) in [
        (RetryPolicy::none(), "{}"),
        (RetryPolicy::fixed(3, secs(2)), r#"{"n":4,"d":2000}"#),
        (RetryPolicy::exponential(5, secs(1)), r#"{"n":6,"d":1000,"b":2.0,"j":"full"}"#),
        (listed, r#"{"n":-1,"d":[1000,5000],"c":["bad"]}"#),
        (bounded, r#"{"n":0,"x":1000}"#),
    ] {
        assert_eq!(serde_json::to_string(&policy).unwrap(), stored);
        assert_eq!(serde_json::from_str::<RetryPolicy>(stored).unwrap(), policy);
    }
    for unreadable in [r#"{"n":-2}"#, r#"{"z":1}"#, r#"{"d":-1}"#, r#"{"j":"half"}"#] {
        assert!(serde_json::from_str::<RetryPolicy>(unreadable).is_err(), "{unreadable}");
    }
}

#[test]
fn the_largest_policy_takes_exactly_its_budget() {
    let stored = serde_json::to_string(&largest()).unwrap();
    assert_eq!(stored.len(), MAX_STORED_BYTES);
    assert_eq!(serde_json::from_str::<RetryPolicy>(&stored).unwrap(), largest());
    let digits = f64::MIN_POSITIVE;
    let fixed = RetryPolicy { delay: Delay::Fixed(MAX_DELAY), backoff: digits, ..largest() };
    assert!(serde_json::to_string(&fixed).unwrap().len() < MAX_STORED_BYTES);
}

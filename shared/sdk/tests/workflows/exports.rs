//! Runs that are exported from one system and replayed with the code of another.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails if it doesn't find what it expects")]
#![expect(unreachable_pub, reason = "steps and workflows are public, as a user's are")]

use std::fmt::Debug;

use tickover::client::Handle;
use tickover::prelude::*;
use tickover::test::{ReplayError, Replayed, TestEnv};

mod today {
    use tickover::prelude::*;

    #[tickover::step]
    pub async fn charge(cents: u32) -> Result<u32> {
        Ok(cents)
    }

    #[tickover::step]
    pub async fn refuse((): ()) -> Result<u32, Failure> {
        Err(Failure::new("card_declined", "no"))
    }

    /// An order: one that costs nothing is refused.
    #[tickover::workflow]
    pub async fn order(ctx: Ctx, cents: u32) -> Result<u32> {
        story(ctx, cents).await
    }

    pub(crate) async fn story(ctx: Ctx, cents: u32) -> Result<u32> {
        let note: String = ctx.capture("note", || "n".repeat(3_000)).await?;
        let charged = if cents == 0 { ctx.step(refuse(())).await? } else { ctx.step(charge(cents)).await? };
        ctx.sleep("settle", "7d").await?;
        let seen: u32 = ctx.wait_for_event("seen", forever()).await?;
        Ok(charged + seen + u32::try_from(note.len()).unwrap_or(0))
    }
}

/// An export of an order of today's, after this time.
async fn export(cents: u32, after: &str) -> String {
    let env = TestEnv::new().workflow(today::order).step::<today::charge>().step::<today::refuse>();
    let run = env.start(&today::order, cents).await.unwrap();
    env.advance(after).await.unwrap();
    if after == "8d" {
        run.send_event("seen", 1).await.unwrap();
        run.result().await.unwrap();
    }
    exported(&env, run.handle(), true).await
}

async fn exported<O>(env: &TestEnv, run: &Handle<O>, payloads: bool) -> String {
    let export = env.client().api().export(run.id(), None, payloads).await.unwrap();
    serde_json::to_string(&export).unwrap()
}

#[tokio::test]
async fn the_code_of_an_open_run_waits_where_the_run_waits_and_starts_nothing() {
    let env = TestEnv::new().workflow(today::order);
    let before = env.writes();
    for (after, name) in [("1d", "settle"), ("7d", "event:seen")] {
        let replayed = env.replay(&export(500, after).await).await.unwrap();
        assert_eq!(replayed, Replayed::Waits(vec![name.to_owned()]), "{after}");
    }
    assert_eq!(env.writes(), before);
}

#[tokio::test]
async fn the_code_of_a_run_that_has_ended_ends_in_the_same_way() {
    let env = TestEnv::new().workflow(today::order);
    assert_eq!(env.replay(&export(500, "8d").await).await, Ok(Replayed::Completed("3501".to_owned())));
    let Ok(Replayed::Failed(error)) = env.replay(&export(0, "1d").await).await else { panic!("not failed") };
    assert!(error.contains("card_declined"), "{error}");
}

/// Puts a pointer in the place of a payload, as an export has it whose payload had expired.
fn without(export: &str, payload: &str) -> String {
    let pointer = r#"{"b":{"i":"AAAAAAAAAAAAAAAAAAAAAA","n":9000,"x":1}}"#;
    let expired = export.replacen(payload, pointer, 1);
    assert_ne!(expired, export, "{payload} isn't in {export}");
    expired
}

#[tokio::test]
async fn a_payload_that_had_expired_is_named() {
    let env = TestEnv::new().workflow(today::order);
    let export = export(500, "1d").await;
    let note = format!(r#"{{"j":"\"{}\""}}"#, "n".repeat(3_000));
    for (payload, name) in [(r#"{"j":"500"}"#, "the input"), (note.as_str(), "note")] {
        let refused = env.replay(&without(&export, payload)).await.unwrap_err();
        assert_eq!(refused, ReplayError::PayloadExpired(name.to_owned()));
        assert!(refused.to_string().contains(&format!("payload of {name} had expired")), "{refused}");
    }
}

mod counting {
    use tickover::prelude::*;

    /// Counts to three, a number in each run.
    #[tickover::workflow]
    pub(crate) async fn count(ctx: Ctx, number: u32) -> Result<u32> {
        ctx.sleep("pause", "1m").await?;
        if number < 3 { ctx.continue_as_new(number + 1).await } else { Ok(number) }
    }
}

#[tokio::test]
async fn the_code_of_an_earlier_run_continues_as_new_again() {
    let env = TestEnv::new().workflow(counting::count);
    let run = env.start(&counting::count, 1).await.unwrap();
    assert_eq!(run.result().await, Ok(3));
    for (number, expected) in [
        (Some(1), Replayed::ContinuedAsNew),
        (Some(2), Replayed::ContinuedAsNew),
        (Some(3), Replayed::Completed("3".to_owned())),
        (None, Replayed::Completed("3".to_owned())),
    ] {
        let export = env.client().api().export(run.handle().id(), number, true).await.unwrap();
        let replayed = env.replay(&serde_json::to_string(&export).unwrap()).await;
        assert_eq!(replayed, Ok(expected), "{number:?}");
    }
}

mod other_type {
    use tickover::prelude::*;

    #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
    pub struct Receipt {
        pub number: u32,
    }

    #[tickover::step]
    pub async fn charge(cents: u32) -> Result<Receipt> {
        Ok(Receipt { number: cents })
    }

    #[tickover::workflow]
    pub async fn order(ctx: Ctx, cents: u32) -> Result<u32> {
        let _note: String = ctx.capture("note", String::new).await?;
        Ok(ctx.step(charge(cents)).await?.number)
    }
}

#[tokio::test]
async fn a_result_of_another_type_is_named_with_what_is_stored_and_what_is_expected() {
    let env = TestEnv::new().workflow(other_type::order);
    let refused = env.replay(&export(500, "1d").await).await.unwrap_err();
    let ReplayError::Misfit { step, problem, stored } = &refused else { panic!("{refused:?}") };
    assert_eq!((step.as_deref(), stored.as_deref()), (Some("charge"), Some("500")));
    assert!(problem.contains("Receipt"), "{problem}");
    assert!(refused.to_string().ends_with("(stored: 500)"), "{refused}");
}

mod renamed {
    use tickover::prelude::*;

    #[tickover::step]
    pub async fn charge_card(cents: u32) -> Result<u32> {
        Ok(cents)
    }

    #[tickover::workflow]
    pub async fn order(ctx: Ctx, cents: u32) -> Result<u32> {
        let _note: String = ctx.capture("note", String::new).await?;
        Ok(ctx.step(charge_card(cents)).await?)
    }
}

mod shorter {
    use tickover::prelude::*;

    #[tickover::workflow]
    pub async fn order(ctx: Ctx, _cents: u32) -> Result<u32> {
        let note: String = ctx.capture("note", String::new).await?;
        Ok(u32::try_from(note.len()).unwrap_or(0))
    }
}

#[tokio::test]
async fn a_step_that_was_renamed_or_left_out_is_named_with_what_the_code_asks_for_instead() {
    let export = export(500, "1d").await;
    let refused = TestEnv::new().workflow(renamed::order).replay(&export).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "after `note`, the run has `charge`, and the code asks for `charge_card`: was it renamed?"
    );
    let refused = TestEnv::new().workflow(shorter::order).replay(&export).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "after `note`, the run has `charge`, and the code doesn't ask for it: was it left out?"
    );
}

mod other_input {
    use tickover::prelude::*;

    #[tickover::workflow]
    pub async fn order(ctx: Ctx, lines: Vec<u32>) -> Result<u32> {
        let note: String = ctx.capture("note", String::new).await?;
        Ok(u32::try_from(note.len() + lines.len()).unwrap_or(0))
    }
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_shown_also_if_the_run_has_only_started() {
    let env = TestEnv::new().workflow(today::order);
    let run = env.start(&today::order, 500).await.unwrap();
    for export in [exported(&env, run.handle(), true).await, export(500, "1d").await] {
        let refused = TestEnv::new().workflow(other_input::order).replay(&export).await.unwrap_err();
        let ReplayError::Misfit { step: None, problem, stored } = refused else { panic!("{refused:?}") };
        assert!(problem.contains("the input doesn't fit workflow `order`"), "{problem}");
        assert_eq!(stored.as_deref(), Some("500"));
    }
}

mod foreign {
    use tickover::prelude::*;

    #[tickover::workflow]
    pub async fn order(ctx: Ctx, _cents: u32) -> Result<u32> {
        let _note: String = ctx.capture("note", String::new).await?;
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        Ok(0)
    }
}

#[tokio::test]
async fn code_that_waits_for_what_is_not_of_its_context_is_told() {
    let started = TestEnv::new().workflow(today::order);
    let run = started.start(&today::order, 500).await.unwrap();
    let export = exported(&started, run.handle(), true).await;
    let refused = TestEnv::new().workflow(foreign::order).replay(&export).await.unwrap_err();
    assert_eq!(refused, ReplayError::Foreign { after: None });
    assert!(refused.to_string().contains("put it into a step"), "{refused}");
}

mod random {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tickover::prelude::*;

    /// As random as it gets in a test.
    static SEED: AtomicU32 = AtomicU32::new(0);

    #[tickover::workflow]
    pub async fn order(ctx: Ctx, cents: u32) -> Result<u32> {
        let _note: String = ctx.capture("note", String::new).await?;
        let fee = SEED.fetch_add(1, Ordering::SeqCst);
        let charged = ctx.step(super::today::charge(cents + fee)).await?;
        ctx.sleep("settle", "7d").await?;
        Ok(charged)
    }

    #[tickover::workflow("order")]
    pub async fn at_the_end(ctx: Ctx, cents: u32) -> Result<u32> {
        let _story: u32 = super::today::story(ctx, cents).await?;
        Ok(SEED.fetch_add(1, Ordering::SeqCst))
    }
}

#[tokio::test]
async fn random_code_is_found_by_its_second_replay() {
    let refused = TestEnv::new().workflow(random::order).replay(&export(500, "1d").await).await.unwrap_err();
    let ReplayError::Random { after, first, second } = &refused else { panic!("{refused:?}") };
    assert_eq!(after.as_deref(), Some("`note`"));
    assert!(first.contains("`charge` with 50") && second.contains("`charge` with 50"), "{refused}");
    assert_ne!(first, second);
    let ended = export(500, "8d").await;
    let refused = TestEnv::new().workflow(random::at_the_end).replay(&ended).await.unwrap_err();
    assert!(
        matches!(&refused, ReplayError::Random { first, .. } if first.contains("it ends with")),
        "{refused}"
    );
}

mod longer {
    use tickover::prelude::*;

    #[tickover::workflow]
    pub async fn order(ctx: Ctx, cents: u32) -> Result<u32> {
        let ended = super::today::story(ctx.clone(), cents).await?;
        ctx.sleep("reflect", "1d").await?;
        Ok(ended)
    }
}

#[tokio::test]
async fn a_run_that_has_ended_must_not_go_on() {
    let env = TestEnv::new().workflow(longer::order);
    let refused = env.replay(&export(500, "8d").await).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the run is completed, and the code goes on after it: it waits for reflect"
    );
}

mod panicking {
    use tickover::prelude::*;

    #[tickover::workflow]
    pub async fn order(_ctx: Ctx, _cents: u32) -> Result<u32> {
        panic!("not written yet")
    }
}

#[tokio::test]
async fn what_cannot_be_replayed_says_why() {
    fn refused<T: Debug>(replayed: Result<T, ReplayError>) -> String {
        replayed.unwrap_err().to_string()
    }
    let env = TestEnv::new().workflow(today::order).step::<today::charge>();
    let export = export(500, "1d").await;
    let none = refused(TestEnv::new().replay(&export).await);
    assert_eq!(none, "the test has no workflow named \"order\"");
    let panics = refused(TestEnv::new().workflow(panicking::order).replay(&export).await);
    assert!(panics.contains("not written yet"), "{panics}");
    for text in [
        "",
        "{}",
        "[1]",
        &export.replacen("\"format\":1", "\"format\":2", 1),
        &export.replace("\"v\":1", "\"v\":9"),
    ] {
        let problem = refused(env.replay(text).await);
        assert!(problem.starts_with("this isn't an export that this version reads"), "{problem}");
    }
    let run = env.start(&today::order, 77_777_777).await.unwrap();
    env.advance("1d").await.unwrap();
    let without = exported(&env, run.handle(), false).await;
    assert!(!without.contains("77777777") && !without.contains("nnn"), "{without}");
    assert!(refused(env.replay(&without).await).contains("`--payloads`"));
}

#[tickover::workflow]
async fn many(ctx: Ctx, count: u32) -> Result<u32> {
    for number in 0..count {
        ctx.capture(format!("number-{number}"), move || number).await?;
    }
    ctx.wait_for_event::<u32>("end", forever()).await?;
    Ok(count)
}

#[tokio::test]
async fn a_long_journal_is_exported_in_parts() {
    let env = TestEnv::new().workflow(many);
    let run = env.start(&many, 2_500).await.unwrap();
    env.run_until_idle().await.unwrap();
    let export = exported(&env, run.handle(), true).await;
    assert!(export.contains("number-2499"));
    assert_eq!(env.replay(&export).await, Ok(Replayed::Waits(vec!["event:end".to_owned()])));
}

//! Crons as a user's program creates and operates them, connected directly to a system in memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use tickover::Millis;
use tickover::client::{ClientError, CronHandle, CronStatus, DefineCron, Missed, Overlap, RunState};
use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv};

#[tickover::step(queue = "reports", retry = "fixed(1, 1s)")]
async fn report(what: String) -> Result<String, Failure> {
    Ok(format!("a report on {what}"))
}

#[tickover::workflow("rounds", run_timeout = "10d")]
async fn rounds(ctx: Ctx, length: String) -> Result<u32> {
    ctx.sleep("walk", length.as_str()).await?;
    Ok(1)
}

fn env() -> TestEnv {
    TestEnv::new().step::<report>().workflow(rounds)
}

fn nightly(env: &TestEnv) -> CronHandle {
    env.client().cron("nightly").unwrap()
}

fn reports(env: &TestEnv) -> DefineCron {
    nightly(env).create(env.client().schedule(report("sales".to_owned())).label("team", "blue"))
}

#[tokio::test]
async fn a_cron_starts_a_step_by_the_clocks_of_its_zone() {
    let env = env();
    // 2026-01-01T00:00:00Z is 01:00 in Berlin.
    let made = reports(&env).cron("0 3 * * *").time_zone("Europe/Berlin").run_ids("report-{occurrence}");
    let made = made.await.unwrap();
    assert_eq!((made.id.as_str(), made.status.as_str(), made.started), ("nightly", "active", 0));
    assert_eq!((made.cron.as_deref(), made.time_zone.as_deref()), (Some("0 3 * * *"), Some("Europe/Berlin")));
    let hours = |hours: u64| BEGINNING.plus(Millis::from_secs(hours * 3_600));
    assert_eq!((made.next_at, made.every, made.jitter), (Some(hours(2).into()), None, None));

    env.advance("27h").await.unwrap();
    let found = nightly(&env).describe().await.unwrap();
    assert_eq!((found.started, found.next_at), (2, Some(hours(50).into())));
    let given = r#"{"id":"report-{occurrence}","queue":"reports","kind":"report","input":"sales","retry":{"#;
    assert!(found.task.unwrap().as_str().starts_with(given));
    let run = &found.runs[1];
    assert_eq!((run.id.as_str(), *run.at, run.manual), ("report-20260102T020000Z", hours(26), false));
    assert_eq!((run.state.known(), run.status.as_deref()), (Some(RunState::Open), Some("completed")));
    let task = env.client().task_handle::<String>(run.id.as_str()).unwrap();
    assert_eq!(task.result().await.unwrap(), "a report on sales");
    assert_eq!(i64::from(task.describe().await.unwrap().max_attempts.0), 2);
}

#[tokio::test]
async fn a_cron_starts_executions_with_the_timeouts_of_their_workflow() {
    let env = env();
    let start = env.client().start(&rounds, "90m".to_owned()).memo(1);
    let made = nightly(&env).create(start).every("1h").overlap(Overlap::AllowAll).missed(Missed::RunOnce);
    let made = made.max_runs(2).jitter("1m").await.unwrap();
    assert_eq!((made.every, made.max_runs), (Some(Millis::from_secs(3_600).into()), Some(2)));
    assert!(made.overlap == Overlap::AllowAll && made.missed == Missed::RunOnce);
    assert!(made.next_start_at >= made.next_at && made.jitter == Some(Millis::from_secs(60).into()));

    env.advance("10h").await.unwrap();
    let found = nightly(&env).describe().await.unwrap();
    assert_eq!((found.status.as_str(), found.started, found.runs.len()), ("finished", 2, 2));
    let run = env.client().handle::<u32>(found.runs[0].id.as_str()).unwrap();
    let described = run.describe().await.unwrap();
    assert_eq!(described.run_deadline_at.unwrap().since(*described.created_at), Millis::from_secs(864_000));
    assert_eq!((described.memo.unwrap().as_str(), run.result().await), ("1", Ok(1)));
}

#[tokio::test]
async fn a_buffered_run_starts_when_the_one_before_it_has_ended() {
    let env = env();
    let start = env.client().start(&rounds, "90m".to_owned());
    nightly(&env).create(start).every("1h").overlap(Overlap::BufferAll).max_runs(3).await.unwrap();
    env.advance("6h").await.unwrap();
    let runs = nightly(&env).describe().await.unwrap().runs;
    let mut started = vec![];
    for run in runs.iter().filter(|run| run.status.is_some()) {
        let run = env.client().handle::<u32>(run.id.as_str()).unwrap();
        started.push(run.describe().await.unwrap().created_at.since(BEGINNING).as_u64() / 60_000);
    }
    started.sort_unstable();
    assert_eq!(started, [60, 150, 240]);
}

#[tokio::test]
async fn a_cron_is_paused_resumed_triggered_and_deleted() {
    let env = env();
    let made = reports(&env).every("1h").paused(true).await.unwrap();
    assert_eq!((made.status.known(), made.paused_at), (Some(CronStatus::Paused), Some(BEGINNING.into())));
    let run = nightly(&env).trigger().await.unwrap();
    env.advance("3h").await.unwrap();
    let task = env.client().task_handle::<String>(run.as_str()).unwrap();
    assert_eq!(task.result().await.unwrap(), "a report on sales");
    let found = nightly(&env).describe().await.unwrap();
    assert_eq!((found.started, found.runs.len(), found.runs[0].manual), (0, 1, true));

    let resumed = nightly(&env).resume().await.unwrap();
    assert_eq!(
        (resumed.status.as_str(), resumed.next_at),
        ("active", Some(env.now().plus(Millis::from_secs(3_600)).into()))
    );
    env.advance("1h").await.unwrap();
    assert_eq!(nightly(&env).pause().await.unwrap().started, 1);

    nightly(&env).delete().await.unwrap();
    for gone in [nightly(&env).describe().await.map(|_| ()), nightly(&env).trigger().await.map(|_| ())] {
        assert!(gone.unwrap_err().is_not_found());
    }
}

#[tokio::test]
async fn creating_a_cron_again_finds_it_and_a_different_one_replaces_it_only_on_request() {
    let env = env();
    reports(&env).every("1h").await.unwrap();
    reports(&env).every("1h").await.unwrap();
    assert_eq!(reports(&env).every("2h").await.unwrap_err().code(), Some("id_conflict"));
    let other = nightly(&env).replace(env.client().task::<()>("other", ())).every("2h").await.unwrap();
    assert_eq!(other.every, Some(Millis::from_secs(7_200).into()));

    let second = env.client().cron("second").unwrap();
    env.advance("1s").await.unwrap();
    second.replace(env.client().task::<()>("other", ())).cron("@daily").await.unwrap();
    let first = env.client().list_crons().limit(1).await.unwrap();
    assert_eq!((first.crons.len(), first.crons[0].id.as_str()), (1, "nightly"));
    let rest = env.client().list_crons().cursor(first.cursor.unwrap()).await.unwrap();
    assert_eq!((rest.crons.len(), rest.crons[0].id.as_str()), (1, "second"));
    assert_eq!(rest.crons[0].time_zone.as_deref(), Some("UTC"));
}

#[tokio::test]
async fn invalid_crons_fail_before_anything_is_sent() {
    let env = env();
    let (client, nightly) = (env.client(), nightly(&env));
    let task = || client.task::<()>("k", 1);
    let start = || client.start(&rounds, "1s".to_owned());
    for (made, field) in [
        (nightly.create(task()), "cron"),
        (nightly.create(task()).every("1h").cron("@daily"), "every"),
        (nightly.create(task()).every("1h").time_zone("UTC"), "time_zone"),
        (nightly.create(task()).every("1500ms"), "every"),
        (nightly.create(task()).every("soon"), "every"),
        (nightly.create(task()).cron("0 3 30 2 *"), "cron"),
        (nightly.create(task()).cron("@daily").time_zone("Berlin"), "time_zone"),
        (nightly.create(task()).every("1h").jitter("a bit"), "jitter"),
        (nightly.create(task()).every("1h").max_runs(0), "max_runs"),
        (nightly.create(task()).every("1h").run_ids("always-the-same"), "run_ids"),
        (nightly.create(task().id("one")).every("1h"), "id"),
        (nightly.create(task().idempotency_key("one")).every("1h"), "idempotency_key"),
        (nightly.create(task().run_at(BEGINNING)).every("1h"), "run_at"),
        (nightly.create(task().delay("soon")).every("1h"), "delay"),
        (nightly.create(start().id("one")).every("1h"), "id"),
        (nightly.create(start().reject_duplicate()).every("1h"), "reject_duplicate"),
    ] {
        let Err(ClientError::Invalid { field: found, .. }) = made.await else { panic!("{field}") };
        assert_eq!(found, field);
    }
    assert!(client.cron("no spaces").is_err());
    assert_eq!(env.writes(), 0);
}

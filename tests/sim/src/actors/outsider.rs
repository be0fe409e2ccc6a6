//! Somebody without credentials who has tokens: reports in time, at the last moment, too late, twice or never.

use futures::stream::{FuturesUnordered, StreamExt as _};
use tickover_core::duration::Millis;
use tickover_core::payload::Json;
use tickover_core::task::Failure;
use tickover_service::ServiceError;
use tickover_service::callbacks::Report;

use crate::dice::Dice;
use crate::process::Process;
use crate::tokens::Given;

/// How long before or after the end of a token's time the last moment is, at most.
const MOMENT: Millis = Millis::from_secs(2);

/// Deals with one token after the other, and with all at once.
pub async fn outsider(process: Process) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = under_way.next() => {}
            given = process.world.outside.next() => under_way.push(deal_with(&process, given)),
        }
    }
}

async fn deal_with(process: &Process, given: Given) {
    let dice = Dice::new(process.world.seed, &format!("{} of {}", given.event, given.incarnation));
    let valid = given.expires_at.since(process.world.now());
    let first_wait = given.heartbeat.unwrap_or(valid).min(valid);
    let lasts = match dice.between(0, 9) {
        _ if process.world.hardship.is_calm => Millis::from_secs(2),
        _ if !process.world.in_fault_phase() => dice.secs(1, 5),
        0..=3 => dice.millis(0, valid.as_u64()),
        // When the first wait ends.
        4 | 5 => near(&dice, first_wait),
        6 => near(&dice, valid),
        7 => first_wait.saturating_add(dice.millis(0, valid.as_u64())),
        8 => valid.saturating_add(dice.secs(1, 60)),
        _ => return,
    };
    let ends_at = process.world.now().plus(lasts);
    // Some are late with a sign of life, and go on.
    let between = Millis::new(first_wait.as_u64() * dice.between(3, 12) / 10);
    while given.heartbeat.is_some() && process.world.now().plus(between) < ends_at {
        process.gate.sleep(between.max(Millis::from_secs(1))).await;
        report(process, &given, Report::Heartbeat).await;
    }
    process.gate.sleep(ends_at.since(process.world.now())).await;
    let first = result(&dice);
    report(process, &given, first.clone()).await;
    if dice.chance(400) {
        process.gate.sleep(dice.millis(0, 20_000)).await;
        let again = if dice.chance(500) { first } else { result(&dice) };
        report(process, &given, again).await;
    }
}

fn near(dice: &Dice, span: Millis) -> Millis {
    span.saturating_sub(MOMENT).saturating_add(dice.millis(0, 2 * MOMENT.as_u64()))
}

fn result(dice: &Dice) -> Report {
    let padding = "x".repeat(dice.pick([0, 0, 30, 500]));
    if dice.chance(250) {
        return Report::Fail { error: Failure::new("refused", padding), retryable: false };
    }
    Report::Complete(Some(Json::string(&format!("{:x} {padding}", dice.roll()))))
}

/// Reports, and repeats that while there is no answer.
async fn report(process: &Process, given: &Given, report: Report) {
    for _ in 0..4 {
        let (caller, given, report) = (process.clone(), given.clone(), report.clone());
        let call = async move { caller.call_back(&given, report).await };
        match process.until_left(call).await {
            None | Some(Ok(()) | Err(ServiceError::Rejected(_))) => return,
            Some(Err(_)) => process.sleep(process.gate.dice.millis(50, 4_000)).await,
        }
    }
}

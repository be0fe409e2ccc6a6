//! What callbacks cost: their waits, and the reports of those who have a token.

use std::sync::Arc;

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::execution::command::Cleanup;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::{EventName, ExecutionId};
use tickover_core::payload::{Json, Payload};
use tickover_service::ServiceError;
use tickover_service::callbacks::{Report, SECRET_MIN, SecretKeeper, Secrets, event_of};
use tickover_tests::meter::Bill;

use super::{asleep, meter, name, started, step, suspended, turn};

/// A secret that is kept outside of the table.
#[derive(Debug)]
struct Fixed;

#[async_trait]
impl SecretKeeper for Fixed {
    async fn read(&self) -> Result<String, ServiceError> {
        Ok("s".repeat(SECRET_MIN))
    }
}

#[tokio::test]
async fn a_callback_costs_what_its_wait_costs_and_its_completion_what_an_event_costs() {
    let meter = meter().await;
    let secrets = Secrets::Kept(Arc::new(Fixed));
    let service = meter.scene.service.clone().with_callbacks(secrets, None);
    let approval = event_of(1, "approval").unwrap();
    let mut bills = vec![];
    for (id, wait) in [("plain", "event:go".to_owned()), ("called", format!("event:{}", approval.as_str()))] {
        started(&meter, id).await;
        let (turn, taken) = turn(&meter).await;
        let now = service.now();
        let until = now.plus(Millis::from_secs(3 * 86_400));
        let value = Payload::Inline(Json::parse(now.as_millis().to_string()).unwrap());
        let asked = Happened::Captured { name: name("callback:approval"), value };
        let entries =
            [asked, Happened::Until { name: name(wait), until }].map(|what| Entry { at: now, what });
        let suspend = suspended(&meter, &turn, &turn.execution, asleep(entries.to_vec(), Some(until), false));
        bills.push((taken, suspend.await));
    }
    assert_eq!(bills[0], bills[1]);
    let id = ExecutionId::parse("called").unwrap();
    let incarnation = service.execution(&id).await.unwrap().unwrap().execution.incarnation;
    let until = service.now().plus(Millis::from_secs(3 * 86_400));
    let made = service.callback_of_wait(&id, incarnation, approval, until);
    let (made, bill) = meter.bill(made).await;
    assert_eq!(bill, Bill { writes: 0.0, reads: 0.0, sends: 0 });
    let token = made.unwrap().token;
    let call = async |token: &str, report: Report| meter.bill(service.call_back(token, report)).await;
    let forged = call(&format!("A{token}"), Report::Heartbeat).await;
    assert_eq!((forged.0.is_err(), forged.1), (true, Bill { writes: 0.0, reads: 0.0, sends: 0 }));
    let (heard, bill) = call(&token, Report::Heartbeat).await;
    heard.unwrap();
    assert_eq!(bill, Bill { writes: 0.0, reads: 1.0, sends: 0 });
    let complete = || Report::Complete(Json::parse("true"));
    let (done, bill) = call(&token, complete()).await;
    done.unwrap();
    // Like each event that comes long before its wait ends: the record, and its due slot, which moves.
    assert_eq!(bill, Bill { writes: 3.0, reads: 1.0, sends: 1 });
    let go = EventName::parse("go").unwrap();
    let (sent, event) =
        meter.bill(service.send_event(&ExecutionId::parse("plain").unwrap(), go, None, None)).await;
    sent.unwrap();
    assert_eq!(event, bill);
    let (again, bill) = call(&token, complete()).await;
    again.unwrap_err();
    assert_eq!(bill, Bill { writes: 0.0, reads: 1.0, sends: 0 });
}

/// Somebody without credentials can't make us read megabytes.
#[tokio::test]
async fn a_report_with_a_token_reads_no_more_of_a_long_history() {
    let meter = meter().await;
    let secrets = Secrets::Kept(Arc::new(Fixed));
    let service = meter.scene.service.clone().with_callbacks(secrets, None);
    let approval = event_of(1, "approval").unwrap();
    started(&meter, "e").await;
    let (turn, _) = turn(&meter).await;
    let mut execution = turn.execution.clone();
    for number in 0..20 {
        let entries = (0..20).map(|step_of| step(&meter, 20 * number + step_of)).collect();
        let recorded = service.record_turn(&execution, turn.lease, entries, Cleanup::default());
        execution = recorded.await.unwrap();
    }
    let (now, until) = (service.now(), service.now().plus(Millis::from_secs(86_400)));
    let begun = Happened::Until { name: name(format!("event:{}", approval.as_str())), until };
    let suspend = asleep(vec![Entry { at: now, what: begun }], Some(until), false);
    suspended(&meter, &turn, &execution, suspend).await;
    let (whole, read) = meter.bill(service.journal_of(&execution)).await;
    assert!(whole.unwrap().len() == 400 && read.reads > 5.0, "{read:?}");
    let made = service.callback_of_wait(&execution.id, execution.incarnation, approval, until).await;
    let token = made.unwrap().token;
    let complete = || Report::Complete(Json::parse("true"));
    for (report, is_open) in [(Report::Heartbeat, true), (complete(), true), (complete(), false)] {
        let (answer, bill) = meter.bill(service.call_back(&token, report)).await;
        assert_eq!(answer.is_ok(), is_open);
        // The record, and the item that would say that the result has come: twice where it is missing.
        assert!(bill.reads <= 2.5, "{bill:?}");
    }
}

/// So does what was written after the wait began, which no longer fits into the record: it is read once.
#[tokio::test]
async fn however_many_reports_come_for_a_wait_that_began_long_ago_its_history_is_read_once() {
    let meter = meter().await;
    let service = meter.scene.service.clone().with_callbacks(Secrets::Kept(Arc::new(Fixed)), None);
    let approval = event_of(1, "approval").unwrap();
    started(&meter, "e").await;
    let (turn, _) = turn(&meter).await;
    let mut execution = turn.execution.clone();
    let (now, until) = (service.now(), service.now().plus(Millis::from_secs(86_400)));
    let begun = Happened::Until { name: name(format!("event:{}", approval.as_str())), until };
    let mut entries = vec![Entry { at: now, what: begun }];
    for number in 0..20 {
        entries.extend((0..20).map(|step_of| step(&meter, 20 * number + step_of)));
        let recorded =
            service.record_turn(&execution, turn.lease, std::mem::take(&mut entries), Cleanup::default());
        execution = recorded.await.unwrap();
    }
    suspended(&meter, &turn, &execution, asleep(vec![], Some(until), false)).await;
    let made = service.callback_of_wait(&execution.id, execution.incarnation, approval, until).await;
    let token = made.unwrap().token;
    let first = meter.bill(service.call_back(&token, Report::Heartbeat)).await;
    assert!(first.0.is_ok() && first.1.reads > 5.0, "{:?}", first.1);
    for _ in 0..3 {
        meter.scene.clock.advance(Millis::from_secs(60));
        let (answer, bill) = meter.bill(service.call_back(&token, Report::Heartbeat)).await;
        assert!(answer.is_ok() && bill.reads <= 2.5, "{bill:?}");
    }
    let (answer, bill) = meter.bill(service.call_back(&token, Report::Complete(Json::parse("true")))).await;
    assert!(answer.is_ok() && bill.reads <= 2.5, "{bill:?}");
}

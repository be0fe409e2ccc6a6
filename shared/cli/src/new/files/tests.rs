//! The workflow in a system in memory. Its clock skips the time in which nothing happens.

use std::sync::{Arc, Mutex};

use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};

use {{crate}}::{Order, charge, fulfil, print_label, refund};

fn order() -> Order {
    Order {
        number: 7,
        cents: 500,
        address: "1 Main Street".to_owned(),
    }
}

#[tokio::test]
async fn an_order_that_is_shipped_after_two_days_has_a_receipt() {
    let env = TestEnv::new().workflow(fulfil).step::<print_label>();
    let run = env.start(&fulfil, order()).await.unwrap();
    env.advance("2d").await.unwrap();
    run.send_event("shipped", "a bicycle").await.unwrap();
    let receipt = run.result().await.unwrap();
    assert_eq!(receipt.label, "7: 1 Main Street");
    assert_eq!(receipt.carrier, "a bicycle");
}

#[tokio::test]
async fn an_order_that_is_not_shipped_within_seven_days_is_refunded() {
    let env = TestEnv::new().workflow(fulfil).step::<print_label>();
    let run = env.start(&fulfil, order()).await.unwrap();
    env.advance("6d").await.unwrap();
    assert!(run.describe().await.unwrap().is_live());
    run.result().await.unwrap_err();
    let timeline = run.timeline().await.unwrap();
    assert!(timeline.contains("undo:refund: completed"), "{timeline}");
}

#[tokio::test]
async fn a_charge_is_tried_again_after_an_error() {
    let env = TestEnv::new()
        .workflow(fulfil)
        .step::<print_label>()
        .mock::<charge>(|_| match step_info().map(|info| info.attempt) {
            Some(1) => Err(Error::new("offline", "the payment service is down")),
            _ => Ok("p-7".to_owned()),
        });
    let run = env.start(&fulfil, order()).await.unwrap();
    run.send_event("shipped", "a bicycle").await.unwrap();
    assert_eq!(run.result().await.unwrap().payment, "p-7");
}

/// The worker is lost while the label is being printed. Another worker continues, and doesn't charge again.
#[tokio::test]
async fn a_step_with_a_result_is_not_repeated_after_a_crash() {
    let charges = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&charges);
    let env = TestEnv::new().workflow(fulfil).mock::<charge>(move |_| {
        *counted.lock().unwrap() += 1;
        Ok("p-7".to_owned())
    });
    let run = env.start(&fulfil, order()).await.unwrap();
    env.run_until_idle().await.unwrap();
    assert_eq!(env.unanswered(), ["print_label"]);

    env.kill();
    let print = |order: Order| Ok(order.address);
    env.answer_now("print_label", print).await.unwrap();
    run.send_event("shipped", "a bicycle").await.unwrap();
    assert_eq!(run.result().await.unwrap().payment, "p-7");
    assert_eq!(env.deaths(), 1);
    assert_eq!(*charges.lock().unwrap(), 1);
}

/// The order is shipped or refunded in a first run. Then the same happens again and again, and each time the worker is
/// lost after another one of its writes.
#[tokio::test]
async fn a_crash_after_any_write_does_not_change_what_is_paid() {
    let payments = Arc::new(Mutex::new(vec![]));
    // The payment service ignores a call with a key that it knows.
    let noted = |what: &'static str| {
        let payments = Arc::clone(&payments);
        move || {
            let key = step_info().map(|info| info.idempotency_key);
            let mut payments = payments.lock().unwrap();
            if !payments.contains(&(what, key.clone())) {
                payments.push((what, key));
            }
        }
    };
    let env = || {
        let (charged, refunded) = (noted("charge"), noted("refund"));
        TestEnv::new()
            .workflow(fulfil)
            .step::<print_label>()
            .mock::<charge>(move |order| {
                charged();
                Ok(format!("p-{}", order.number))
            })
            .mock::<refund>(move |_| {
                refunded();
                Ok(())
            })
    };
    let story = async |env: &TestEnv, is_shipped: bool| {
        payments.lock().unwrap().clear();
        let run = env.start(&fulfil, order()).await.unwrap();
        env.advance("1d").await.unwrap();
        if is_shipped {
            run.send_event("shipped", "a bicycle").await.unwrap();
        }
        let is_fulfilled = run.result().await.is_ok();
        let seen = payments.lock().unwrap().clone();
        let seen: Vec<_> = seen.into_iter().map(|(what, _)| what).collect();
        (is_fulfilled, seen)
    };
    let shipped = with_each_death(env, async |env| story(env, true).await).await;
    assert_eq!(shipped, (true, vec!["charge"]));
    let late = with_each_death(env, async |env| story(env, false).await).await;
    assert_eq!(late, (false, vec!["charge", "refund"]));
}

//! Hints and the due index: when hints are sent, when the tick probes a record, and when a hint counts as lost.

use crate::decision::{Condition, DueReply, Effect, Expiring, Write};
use crate::due::DueKind;
use crate::duration::Millis;
use crate::limits::Limits;
use crate::payload::{BlobRef, Payload};
use crate::queue::{QueueView, Reachability};
use crate::task::Status;
use crate::task::decision::Reply;
use crate::task::due::visible_at;
use crate::timeout::OnTimeout;

use super::fixture::{BUSY, EMPTY, Scene, claimed_up_to, span, t, task};
use super::life::CLAIMED;

const REARMED: Reply = Reply::Due(DueReply::Rearmed);
const DISPATCHED: Reply = Reply::Due(DueReply::Dispatched);
const NOTHING: Reply = Reply::Due(DueReply::Nothing);

// ---- starts

#[test]
fn a_start_within_fifteen_minutes_is_sent_at_once_with_its_instant() {
    let scene = task().starting_in("15m").scheduled().sends_hint_for("15m").due("25m", DueKind::Backstop);
    assert!(!scene.pending().hint_later);
    scene.at("3m").schedule_again().sends_hint_for("15m");
}

#[test]
fn a_later_start_waits_in_the_index_until_the_tick_sends_it() {
    let scene = task().starting_in("15m 1ms").scheduled().sends_nothing().due("12m 1ms", DueKind::Start);
    let scene = scene.at("10m").schedule_again().sends_nothing();
    let scene = scene.at("12m").tick().replies(NOTHING).changes_nothing();
    let scene = scene.at("12m 1ms").tick().replies(DISPATCHED).sends_hint_for("15m 1ms");
    let scene = scene.due("25m 1ms", DueKind::Backstop).tick().replies(NOTHING).sends_nothing();
    scene.schedule_again().sends_hint_for("15m 1ms").at("15m 1ms").claim("a").replies(CLAIMED);
}

#[test]
fn a_later_start_that_the_tick_was_late_for_is_sent_once() {
    let scene = task().starting_in("1h").scheduled().at("3h").tick().replies(DISPATCHED).sends_hint_for("1h");
    scene.due("3h 10m", DueKind::Backstop).tick_seeing(claimed_up_to("3h")).replies(NOTHING).sends_nothing();
}

#[test]
fn a_backoff_longer_than_a_queue_can_delay_is_sent_by_the_tick() {
    let scene = task().attempts(2).delay("2h").scheduled().claim("a").at("1m").fail("a").sends_nothing();
    // It stays in its due slot, because moving costs two index writes. The tick moves it when it finds it.
    let scene = scene.due("10m", DueKind::Backstop).next_tick().replies(REARMED).sends_nothing();
    let scene = scene.due("1h 58m", DueKind::Start).next_tick().replies(DISPATCHED);
    scene.sends_hint_for("2h 1m").due("2h 11m", DueKind::Backstop);
}

#[test]
fn a_deadline_before_a_later_start_comes_first() {
    let scene = task().starting_in("2h").deadline("1h").scheduled().due("1h", DueKind::Instant);
    scene.next_tick().is(Status::TimedOut).sends_nothing();
}

// ---- the due slot

#[test]
fn a_record_is_due_at_its_first_visible_instant_or_at_the_backstop() {
    task().scheduled().due("10m", DueKind::Backstop);
    task().deadline("5m").scheduled().due("5m", DueKind::Instant);
    task().deadline("10m").scheduled().due("10m", DueKind::Instant);
    // This is so soon after the backstop that the tick might be too late to send the timer, so the probe comes
    // earlier.
    task().deadline("10m 1ms").scheduled().due("6m 40s 1ms", DueKind::Backstop);
    task().deadline("13m 20s").scheduled().due("10m", DueKind::Backstop);
    task().deadline("5m").start_within("1m", OnTimeout::Retry).scheduled().due("1m", DueKind::Armed);
}

#[test]
fn a_plain_claim_and_a_heartbeat_do_not_write_to_the_index() {
    let scene = task().deadline("1h").scheduled().at("9m").claim("a").due("10m", DueKind::Backstop);
    scene.heartbeat("a").due("10m", DueKind::Backstop).cancel().due("10m", DueKind::Backstop);
    let scene =
        task().heartbeats("20m", OnTimeout::Retry).scheduled().claim("a").due("10m", DueKind::Backstop);
    assert_eq!(bound(&scene), Some(t("20m")));
}

#[test]
fn a_claim_with_an_earlier_instant_moves_the_due_slot_earlier() {
    let scene = task().close_within("30s", OnTimeout::Retry).scheduled().at("1m").claim("a");
    let scene = scene.due("1m 30s", DueKind::Armed);
    assert_eq!(bound(&scene), None);
    let scene = task().heartbeats("20s", OnTimeout::Retry).scheduled().claim("a").due("20s", DueKind::Armed);
    // Later heartbeats only make the slot too early, which does no harm: the tick corrects it.
    let scene = scene.at("15s").heartbeat("a").due("20s", DueKind::Armed);
    assert_eq!(bound(&scene), Some(t("35s")));
    scene.next_tick().replies(REARMED).due("35s", DueKind::Armed);
}

#[test]
fn a_retry_that_keeps_the_due_slot_requires_it_to_be_no_later_than_the_backstop() {
    let scene = task().attempts(2).scheduled().claim("a").at("4m").fail("a").due("10m", DueKind::Backstop);
    assert_eq!(bound(&scene), Some(t("14m")));
    let scene = task().attempts(2).deadline("12m").scheduled().claim("a").at("4m").fail("a");
    assert_eq!(bound(&scene), Some(t("12m")));
    let scene = task().scheduled().at("4m").claim("a");
    assert_eq!(bound(&scene), None);
}

/// The latest due slot that the last write's condition allows.
fn bound(scene: &Scene) -> Option<crate::time::Timestamp> {
    match scene.decision().writes.as_slice() {
        [Write::Put { condition: Condition::Unchanged { due_no_later_than, .. }, .. }] => *due_no_later_than,
        writes => panic!("not one update: {writes:#?}"),
    }
}

#[test]
fn a_release_after_a_long_wait_moves_the_due_slot_earlier() {
    let long =
        task().scheduled().claim_for("a", "12h").next_tick().next_tick().due("2h 40m", DueKind::Backstop);
    long.at("1h").release("a").due("1h 10m", DueKind::Backstop);
}

#[test]
fn a_revived_task_is_in_the_index_again() {
    task().scheduled().cancel().at("1h").retry().due("1h 10m", DueKind::Backstop);
}

#[test]
fn a_record_that_the_tick_times_out_leaves_its_past_due_slot_in_the_same_write() {
    let scene = task().attempts(2).delay("5m").heartbeats("20s", OnTimeout::Retry).scheduled().claim("a");
    scene.next_tick().is(Status::Pending).due("15m 20s", DueKind::Backstop).tick().replies(NOTHING);
}

#[test]
fn moving_the_due_slot_keeps_the_version_so_that_hints_stay_valid() {
    let scene = task().scheduled();
    let version = scene.record().version;
    let scene = scene.next_tick().replies(REARMED);
    assert_eq!(scene.record().version, version);
    assert!(matches!(scene.decision().writes[..], [Write::Rearm { .. }]));
}

#[test]
fn a_record_that_is_not_due_or_has_ended_is_left_alone() {
    task().scheduled().at("9m 59s").tick_seeing(EMPTY).replies(NOTHING).changes_nothing().sends_nothing();
    task()
        .scheduled()
        .cancel()
        .at("1h")
        .tick_seeing(EMPTY)
        .replies(NOTHING)
        .changes_nothing()
        .sends_nothing();
}

// ---- lost hints

#[test]
fn a_record_found_too_early_moves_to_its_own_backstop() {
    let scene = task().attempts(2).scheduled().claim("a").at("4m").fail("a").due("10m", DueKind::Backstop);
    let scene = scene.next_tick().replies(REARMED).sends_nothing().due("14m", DueKind::Backstop);
    scene.next_tick().replies(REARMED).sends_nothing().due("44m", DueKind::Backstop);
}

#[test]
fn while_its_queue_has_messages_probes_are_four_times_as_far_apart_up_to_six_hours() {
    let scene = task().scheduled().due("10m", DueKind::Backstop);
    let scene = scene.next_tick().replies(REARMED).sends_nothing().due("40m", DueKind::Backstop);
    let scene = scene.next_tick().replies(REARMED).sends_nothing().due("2h 40m", DueKind::Backstop);
    scene.next_tick().replies(REARMED).sends_nothing().due("6h", DueKind::Backstop);
}

#[test]
fn after_six_hours_the_hint_is_sent_again_for_any_state_of_the_queue() {
    let scene = task().scheduled().next_tick().next_tick().next_tick().at("6h").tick().replies(DISPATCHED);
    let scene = scene.sends_hint_for("0s").due("6h 10m", DueKind::Backstop);
    assert_eq!(scene.record().hinted_at, Some(t("6h")));
    // A tick that comes days late needs no earlier probe.
    task().scheduled().at("2d").tick().replies(DISPATCHED);
    task().scheduled().at("5h 59m").tick().replies(REARMED).sends_nothing();
}

#[test]
fn a_queue_seen_empty_twice_a_minute_apart_has_lost_the_hint() {
    let scene = task().scheduled().at("10m").tick_seeing(EMPTY).replies(REARMED).sends_nothing();
    let scene = scene.due("11m", DueKind::Recheck).at("10m 59s").tick_seeing(EMPTY).replies(NOTHING);
    let version = scene.record().version;
    let scene = scene.at("11m").tick_seeing(EMPTY).replies(DISPATCHED).sends_hint_for("0s");
    assert_eq!(scene.record().version, version + 1);
    scene.due("21m", DueKind::Backstop);
}

#[test]
fn a_queue_that_was_empty_once_only_has_not() {
    let scene = task().scheduled().next_tick_seeing(EMPTY).due("11m", DueKind::Recheck);
    let scene = scene.next_tick_seeing(BUSY).replies(REARMED).sends_nothing().due("44m", DueKind::Backstop);
    scene.next_tick_seeing(EMPTY).replies(REARMED).sends_nothing().due("45m", DueKind::Recheck);
}

#[test]
fn an_empty_queue_counts_only_for_the_wait_in_which_it_was_probed() {
    let scene = task().attempts(2).scheduled().next_tick_seeing(EMPTY).due("11m", DueKind::Recheck);
    let scene = scene.at("10m 10s").claim("a").at("10m 20s").fail("a").is(Status::Pending);
    scene.at("11m").tick_seeing(EMPTY).replies(REARMED).sends_nothing().due("20m 20s", DueKind::Backstop);
}

#[test]
fn a_hint_that_was_overtaken_by_five_minutes_is_lost() {
    let waiting = || task().scheduled().at("10m");
    waiting().tick_seeing(claimed_up_to("5m")).replies(DISPATCHED).sends_hint_for("0s");
    let scene = waiting().tick_seeing(claimed_up_to("4m 59s 999ms")).replies(REARMED).sends_nothing();
    scene.due("40m", DueKind::Backstop);
}

#[test]
fn after_a_hint_was_sent_again_the_next_probe_is_ten_minutes_later_and_counts_from_it() {
    let scene = task().scheduled().at("10m").tick_seeing(claimed_up_to("5m")).replies(DISPATCHED);
    let scene = scene.due("20m", DueKind::Backstop).tick_seeing(EMPTY).replies(NOTHING).sends_nothing();
    let scene = scene.at("15m").tick_seeing(claimed_up_to("15m")).replies(NOTHING).sends_nothing();
    // The same watermark as before isn't evidence about the new hint.
    let scene = scene.at("20m").tick_seeing(claimed_up_to("14m")).replies(REARMED).sends_nothing();
    scene.due("50m", DueKind::Backstop).at("50m").tick_seeing(claimed_up_to("15m")).replies(DISPATCHED);
}

#[test]
fn an_endless_backlog_gets_a_hint_each_six_hours_at_most() {
    let mut scene = task().scheduled();
    let mut sent = Vec::new();
    while scene.record().due.unwrap().at < t("2d") {
        scene = scene.next_tick();
        if !scene.decision().effects.is_empty() {
            sent.push(scene.record().hinted_at.unwrap());
        }
    }
    assert_eq!(sent.len(), 7);
    assert!(sent.windows(2).all(|pair| pair[1].since(pair[0]) >= span("6h")), "{sent:?}");
}

#[test]
fn a_task_with_a_valid_lease_needs_no_hint() {
    let mut scene = task().scheduled().claim_for("a", "12h");
    for due in ["40m", "2h 40m", "6h", "12h"] {
        let now = scene.record().due.unwrap().at;
        let empty = QueueView { looks_empty: true, watermark: Some(now), ..QueueView::default() };
        scene = scene.at_instant(now).tick_seeing(empty).replies(REARMED).sends_nothing();
        scene = scene.due(due, DueKind::Backstop);
    }
}

#[test]
fn a_task_that_may_not_start_yet_lacks_no_hint() {
    let scene = task()
        .attempts(2)
        .delay("14m")
        .scheduled()
        .claim("a")
        .at("1m")
        .fail("a")
        .due("10m", DueKind::Backstop);
    let scene = scene.next_tick_seeing(EMPTY).replies(REARMED).sends_nothing().due("25m", DueKind::Backstop);
    scene.next_tick_seeing(EMPTY).due("26m", DueKind::Recheck);
}

#[test]
fn a_lost_worker_whose_message_is_lost_too_is_found_from_the_end_of_its_lease_on() {
    let scene = task().scheduled().claim_for("a", "1m").at("10m").tick_seeing(EMPTY).replies(REARMED);
    let scene = scene.due("11m", DueKind::Backstop).next_tick_seeing(EMPTY).due("12m", DueKind::Recheck);
    let scene = scene.next_tick_seeing(EMPTY).replies(DISPATCHED).is(Status::Running).sends_hint_for("1m");
    let scene = scene.due("22m", DueKind::Backstop).claim("b").replies(CLAIMED);
    assert_eq!(scene.record().hinted_at, None);
    // The length of the lease before the loss makes no difference.
    let mut scene = task().scheduled().claim_for("a", "12h").at("11h").heartbeat("a").at("23h").tick();
    scene = scene.due("23h 10m", DueKind::Backstop).next_tick().due("23h 40m", DueKind::Backstop);
    scene.next_tick().due("1d 1h 40m", DueKind::Backstop);
}

#[test]
fn a_deadline_cuts_every_wait_short() {
    let scene = task().deadline("10m 30s").scheduled().due("7m 10s", DueKind::Backstop);
    let scene = scene.next_tick_seeing(EMPTY).due("10m", DueKind::Backstop).sends_timer_for("10m 30s");
    let scene = scene.next_tick_seeing(EMPTY).due("10m 30s", DueKind::Armed);
    scene.next_tick().is(Status::TimedOut);
    task().deadline("1h").scheduled().next_tick().next_tick().due("1h", DueKind::Instant);
    let scene = task().deadline("15m").scheduled().at("10m").tick_seeing(claimed_up_to("5m"));
    scene.replies(DISPATCHED).due("15m", DueKind::Instant);
}

#[test]
fn a_clock_that_goes_back_a_little_sends_nothing_twice() {
    let scene = task().scheduled().next_tick_seeing(EMPTY).next_tick_seeing(EMPTY).replies(DISPATCHED);
    scene.at("10m 58s").tick_seeing(EMPTY).replies(NOTHING).changes_nothing().sends_nothing();
}

// ---- payloads and keys of records that stay open for months

#[test]
fn payloads_and_the_key_are_kept_while_a_task_stays_open_for_months() {
    let large = string_of(2_000);
    let plan = || task().attempts(2).delay("300d").input(&large).labels(&large).keyed();
    let waiting = plan().scheduled();
    let working = plan().scheduled().claim_for("a", "12h");
    let delayed = plan().starting_in("300d").scheduled();
    let backing_off = plan().scheduled().claim("a").fail("a");
    // Beside its input, its details don't fit into the record.
    let plan = task().attempts(2).delay("300d").input(&string_of(350)).keyed();
    let reporting = plan.scheduled().claim_for("a", "12h").details("a", &string_of(500));
    assert!(matches!(reporting.record().details, Some(Payload::Blob(_))));
    for (mut scene, blobs) in [(waiting, 2), (working, 2), (delayed, 2), (backing_off, 2), (reporting, 1)] {
        assert_eq!(scene.record().blobs().count(), blobs);
        let mut extensions = 0;
        while scene.record().due.unwrap().at < t("290d") {
            kept(&scene);
            let due = scene.record().due.unwrap();
            scene = scene.next_tick();
            let extends = |write: &Write| matches!(write, Write::Extend { .. });
            let extended = scene.decision().writes.iter().any(extends);
            extensions += u32::from(extended);
            assert!(extended || scene.record().due.unwrap().at > due.at, "{due:?} didn't move");
        }
        kept(&scene);
        assert!(extensions <= 10, "{extensions} extensions");
    }
}

/// A JSON string of this many characters.
fn string_of(characters: usize) -> String {
    format!("\"{}\"", "x".repeat(characters))
}

/// No item that the record points to expires before the tick reads the record again.
#[track_caller]
fn kept(scene: &Scene) {
    let task = scene.record();
    let next_look = task.due.unwrap().at;
    let retention = Limits::default().retention;
    let blobs: Vec<&BlobRef> = task.blobs().collect();
    assert!(blobs.iter().all(|at| at.expires_at > next_look.plus(retention)), "{blobs:?}, {next_look:?}");
    assert!(task.key.unwrap().expires_at > next_look);
}

#[test]
fn an_extended_expiry_is_the_same_in_the_item_and_in_the_pointer() {
    let large = string_of(2_000);
    let mut scene = task().input(&large).keyed().scheduled();
    while !scene
        .decision()
        .writes
        .iter()
        .any(|write| matches!(write, Write::Extend { item: Expiring::Blob(_), .. }))
    {
        scene = scene.next_tick();
    }
    let task = scene.record();
    let extended = Write::extend_blob(task.blobs().next().unwrap());
    assert_eq!(scene.decision().writes[0], extended);
    while !scene
        .decision()
        .writes
        .iter()
        .any(|write| matches!(write, Write::Extend { item: Expiring::Key(_), .. }))
    {
        scene = scene.next_tick();
    }
    let key = scene.record().key.unwrap();
    let extended = Write::Extend { item: Expiring::Key(key.digest), expires_at: key.expires_at };
    assert!(scene.decision().writes.contains(&extended));
}

#[test]
fn with_a_deadline_payloads_are_given_enough_from_the_start() {
    let large = string_of(2_000);
    let mut scene = task().deadline("200d").input(&large).keyed().scheduled();
    let expires_at = scene.record().blobs().next().unwrap().expires_at;
    assert!(expires_at > t("200d").plus(Limits::default().retention));
    while scene.record().due.is_some() {
        scene = scene.next_tick();
        assert_eq!(scene.record().blobs().next().unwrap().expires_at, expires_at);
    }
    assert_eq!(scene.record().ended().unwrap().ended_at, t("200d"));
}

// ---- the hint

#[test]
fn a_hint_contains_the_current_record_so_that_a_claim_needs_no_read() {
    let scene = task().deadline("1h").input("[1]").scheduled();
    let [Effect::Dispatch { hint, .. }] = scene.decision().effects.as_slice() else { panic!() };
    assert_eq!(&hint.task, scene.record());
    assert_eq!(visible_at(&hint.task), Some(t("1h")));
    assert_eq!(hint.task.due.unwrap().at.since(t("0s")), Millis::from_secs(600));
}

#[test]
fn a_lost_hint_is_found_though_the_time_to_start_passes_again_and_again() {
    // The queue is moving: messages sent after the hint have been received.
    let mut scene = task().attempts(100).start_within("5m", OnTimeout::Retry).scheduled();
    for minute in 1..=15 {
        let now = t(&format!("{minute}m"));
        let flows = QueueView { watermark: Some(now), marked_at: Some(now), ..BUSY };
        if scene.record().due.unwrap().at > now {
            continue;
        }
        scene = scene.at_instant(now).tick_seeing(flows);
        if scene.decision().effects.iter().any(|effect| matches!(effect, Effect::Dispatch { .. })) {
            return;
        }
    }
    panic!("not sent again: {:?}", scene.record());
}

#[test]
fn a_lost_hint_is_sent_again_after_ten_minutes_though_the_time_to_start_passes_before_each_probe() {
    let mut scene = task().attempts(100).delay("20s").start_within("30s", OnTimeout::Retry).scheduled();
    let mut sent = vec![];
    while scene.now() < t("25m") {
        scene = scene.next_tick();
        let is_hint = |effect: &Effect| matches!(effect, Effect::Dispatch { .. });
        sent.extend(scene.decision().effects.iter().any(is_hint).then(|| scene.now()));
        // An earlier hint leads to nothing then.
        assert_eq!(
            scene.pending().since_version == scene.record().version,
            sent.last() == Some(&scene.now()),
        );
    }
    // At the first expiry after that, and ten minutes after the start for which that was sent.
    assert_eq!(sent, [t("10m 30s"), t("21m 20s")]);
}

#[test]
fn a_hint_is_sent_to_a_moving_queue_even_if_its_depth_is_unknown() {
    let silent = |mark: &str| QueueView {
        watermark: Some(t(mark)),
        marked_at: Some(t(mark)),
        reachability: Reachability::Unreachable,
        ..BUSY
    };
    let scene = || task().scheduled().at("10m");
    scene().tick_seeing(silent("9m")).replies(DISPATCHED);
    // A queue that hasn't moved for a long time may not exist any more, and a hint sent now would be lost.
    scene().tick_seeing(silent("4m")).replies(REARMED);
    task().scheduled().at("30m").tick_seeing(silent("9m")).replies(REARMED);
}

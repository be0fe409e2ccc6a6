//! Of a burst of requests, the last one runs.

use super::fixture::{Scene, blob, json, span, t, task};
use crate::id::Fingerprint;
use crate::payload::Payload;
use crate::task::command::{Bounce, Command};
use crate::task::decision::Reply;
use crate::timeout::OnTimeout::Retry;

const TAKEN: Reply = Reply::Bounced { taken: true };
const LEFT: Reply = Reply::Bounced { taken: false };

fn bounce(input: &str) -> Command {
    Command::Bounce(Box::new(Bounce {
        input: Some(json(input)),
        labels: None,
        fingerprint: Fingerprint::from_bytes([5; 16]),
        wait: span("10s"),
        at_most: span("1m"),
        blob_ids: [blob("input"), blob("labels")],
    }))
}

/// The first request of a burst.
fn burst() -> Scene {
    task().starting_in("10s").input("1").scheduled()
}

fn input(scene: &Scene) -> &str {
    match scene.record().input.as_ref().unwrap() {
        Payload::Inline(json) => json.as_str(),
        Payload::Blob(_) => "aside",
    }
}

#[test]
fn each_request_of_a_burst_takes_the_place_of_the_last_and_starts_when_it_is_quiet() {
    let scene = burst().at("4s").run(&bounce("2")).replies(TAKEN);
    assert_eq!((input(&scene), scene.pending().available_at), ("2", t("14s")));
    assert_eq!(scene.decision().effects, [], "its hint is under way already");
    let scene = scene.at("13s").run(&bounce("3")).replies(TAKEN);
    assert_eq!((input(&scene), scene.pending().available_at), ("3", t("23s")));
}

#[test]
fn a_burst_without_an_end_starts_at_its_bound() {
    let scene = burst().at("55s").run(&bounce("2"));
    assert_eq!(scene.pending().available_at, t("1m"));
    let scene = scene.at("2m").run(&bounce("3")).replies(TAKEN);
    assert_eq!((input(&scene), scene.pending().available_at), ("3", t("2m")));
}

#[test]
fn a_task_that_a_worker_has_or_had_is_left_alone() {
    let running = || burst().at("10s").claim("a");
    let changed = running().run(&bounce("2")).replies(LEFT).changes_nothing();
    assert_eq!(input(&changed), "1");
    running().complete("a").run(&bounce("2")).replies(LEFT).changes_nothing();
    running().release("a").run(&bounce("2")).replies(LEFT).changes_nothing();
    let retried = task().attempts(2).starting_in("10s").scheduled().at("10s").claim("a");
    retried.fail_with("a", "broken", "on fire").run(&bounce("2")).replies(LEFT).changes_nothing();
}

#[test]
fn a_request_that_comes_after_the_deadline_records_it() {
    let scene = task().deadline("30s").starting_in("10s").scheduled().at("30s").run(&bounce("2"));
    assert!(scene.replies(LEFT).record().ended().is_some());
}

#[test]
fn the_time_to_wait_for_a_worker_begins_anew() {
    let scene = task().starting_in("10s").start_within("5s", Retry).scheduled().at("9s").run(&bounce("2"));
    assert_eq!(scene.pending().schedule_to_start_at, Some(t("24s")));
}

#[test]
fn a_large_input_is_written_aside() {
    let large = format!("\"{}\"", "x".repeat(2_000));
    let scene = burst().at("1s").run(&bounce(&large)).replies(TAKEN);
    assert_eq!(input(&scene), "aside");
    assert_eq!(scene.decision().blobs()[0].1.as_str(), large);
}

//! Second-precise instants from a tick that comes once a minute, and a tick with much due work at once.

#![expect(clippy::unwrap_used, reason = "a test's helpers may fail it")]

mod backlog;
mod claims;
mod classes;
mod handover;
mod isolation;
mod lost;
mod outage;
mod parked;
mod set_back;
mod sleeps;
mod slot;
mod stale_messages;
mod sweep;
mod sweep_chain;

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_core::timeout::LifeTimeout;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::tick::TickReport;
use tickover_tests::scene::{START, Scene, request};

/// That long after every scene's beginning.
fn after(seconds: u64) -> Timestamp {
    START.plus(Millis::from_secs(seconds))
}

/// A task on the queue `work` with a deadline so many seconds from now.
fn with_deadline(id: &str, seconds: u64) -> ScheduleRequest {
    let mut asked = request("work", Some(id), None);
    asked.timeouts.schedule_to_close =
        Some(LifeTimeout { after: Millis::from_secs(seconds), is_error: true });
    asked
}

/// The tick of a minute, that long after it.
#[expect(clippy::expect_used, reason = "test code, outside of a test function")]
async fn tick_of(scene: &Scene, minute: u64, late: u64) -> TickReport {
    let scheduled_at = after(minute * 60);
    scene.clock.advance(scheduled_at.plus(Millis::from_secs(late)).since(scene.service.now()));
    let stop_at = scene.service.now().plus(Millis::from_secs(50));
    scene.service.tick(scheduled_at, stop_at).await.expect("a tick")
}

//! Invokes the tick once a minute: late, not at all for some minutes, or twice at once.

use tickover_core::duration::Millis;

use crate::history::Fault;
use crate::plan::next_minute;
use crate::process::Process;

const MINUTE_MS: u64 = 60_000;

/// Ticks until the run ends. Only the first ticker of a run ticks every minute.
pub async fn ticker(process: Process, is_first: bool) {
    let dice = &process.gate.dice;
    loop {
        let minute = next_minute(process.world.now());
        process.gate.sleep(minute.since(process.world.now())).await;
        let faults = process.world.faults();
        if dice.chance(faults.missed_tick) {
            let minutes = dice.between(1, 6);
            process.world.fault(process.gate.actor, Fault::MissedTicks(minutes));
            process.gate.sleep(Millis::new(minutes * MINUTE_MS - MINUTE_MS / 2)).await;
            continue;
        }
        let comes = is_first || (process.world.in_fault_phase() && dice.chance(250));
        if comes {
            let late = dice.millis(0, faults.tick_late_ms);
            process.gate.sleep(late).await;
            // A tick that fails is invoked again, as asynchronous invocations are, or only a minute later.
            if process.tick(minute).await.is_err() && dice.chance(500) {
                let _ = process.tick(minute).await;
            }
        }
    }
}

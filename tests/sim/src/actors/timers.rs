//! Reads the queue of timers, as the function does that is invoked with its messages.

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_service::ports::{Queue as _, Received};

use crate::history::Fault;
use crate::process::Process;

/// As many messages as one invocation gets.
const BATCH: usize = 10;
/// The visibility timeout of an invocation's messages.
const VISIBILITY: Millis = Millis::from_secs(60);
const WAIT: Millis = Millis::from_secs(20);

/// Processes timers until the run ends.
pub async fn timers(process: Process) {
    let name = QueueName::timers();
    loop {
        match process.queue.receive(&name, BATCH, VISIBILITY, WAIT).await {
            Ok(messages) => {
                let Some(_invocation) = process.world.invoke().filter(|_| !messages.is_empty()) else {
                    if !messages.is_empty() {
                        process.world.fault(process.gate.actor, Fault::NotInvoked);
                    }
                    continue;
                };
                join_all(messages.iter().map(|message| deal_with(&process, &name, message))).await;
            }
            Err(_) => process.sleep(Millis::from_secs(1)).await,
        }
    }
}

/// A message whose processing failed isn't deleted, and becomes visible again.
async fn deal_with(process: &Process, name: &QueueName, message: &Received) {
    if process.fire(message).await {
        // If it isn't deleted, it is received again and has no effect.
        let _ = process.queue.delete(name, &message.receipt).await;
    }
}

//! A function that is invoked with batches of a work queue's messages, as a worker on Lambda is. Messages that it can't
//! process become visible again. So does the whole batch where the concurrency limit allows no further invocation.

use std::cell::RefCell;

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_service::claim::{ClaimRequest, Isolation};
use tickover_service::ports::{Queue as _, Received};

use super::turn::turn;
use super::worker::work;
use crate::history::Fault;
use crate::plan::QUEUES;
use crate::process::Process;
use crate::process::execution::{Delivery, ReceivedWork};
use crate::world::queue;

/// As many messages as one invocation gets.
const BATCH: usize = 10;
/// The visibility timeout of a batch's messages: longer than an invocation may take.
const VISIBILITY: Millis = Millis::from_secs(90);
/// How long an invocation may take.
const TIMEOUT: Millis = Millis::from_secs(60);
const WAIT: Millis = Millis::from_secs(5);

/// Invokes its function until the run ends.
pub async fn batch(process: Process) {
    loop {
        let name = queue(process.gate.dice.pick(QUEUES));
        let Ok(messages) = process.queue.receive(&name, BATCH, VISIBILITY, WAIT).await else {
            process.sleep(Millis::from_secs(1)).await;
            continue;
        };
        if messages.is_empty() {
            continue;
        }
        let Some(_invocation) = process.world.invoke() else {
            // The messages become visible again after their timeout: received once more, and never processed.
            process.world.fault(process.gate.actor, Fault::NotInvoked);
            process.sleep(Millis::from_secs(1)).await;
            continue;
        };
        let invocation = InvocationWork { process: &process, queue: &name, suspects: RefCell::default() };
        tokio::select! {
            biased;
            () = invocation.work(&messages) => {}
            // Work that isn't finished by then is killed with its process.
            () = process.gate.sleep(TIMEOUT) => {}
        }
    }
}

/// The work of one invocation.
struct InvocationWork<'a> {
    process: &'a Process,
    queue: &'a QueueName,
    /// Messages whose work may have killed another worker.
    suspects: RefCell<Vec<&'a Received>>,
}

impl<'a> InvocationWork<'a> {
    async fn work(&self, messages: &'a [Received]) {
        let isolation = if messages.len() == 1 { Isolation::Alone } else { Isolation::Shared };
        join_all(messages.iter().map(|message| self.take(message, isolation))).await;
        for suspect in self.suspects.take() {
            self.take(suspect, Isolation::Alone).await;
        }
    }

    /// Deletes a message that it has processed; another one becomes visible again.
    async fn take(&self, message: &'a Received, isolation: Isolation) {
        let (process, queue) = (self.process, self.queue);
        let request =
            ClaimRequest { worker: None, max: 1, lease: TIMEOUT, wait: Millis::ZERO, provides: vec![] };
        let Ok(delivery) = process.deliver(queue, message, &request, isolation).await else { return };
        let is_done = match delivery {
            Delivery::Suspect => {
                self.suspects.borrow_mut().push(message);
                false
            }
            Delivery::Spent => true,
            Delivery::ReceivedWork(ReceivedWork::Task(task, held)) => work(process, &task, &held).await,
            Delivery::ReceivedWork(ReceivedWork::Turn(taken)) => turn(process, *taken).await,
        };
        if is_done {
            // If it isn't deleted, it is received again and has no effect.
            let _ = process.queue.delete(queue, &message.receipt).await;
        }
    }
}

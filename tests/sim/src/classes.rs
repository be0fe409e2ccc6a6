//! Class queues, as SQS has them with `Priorities=on`: in a share of the seeds, hints of high and of low priority wait apart
//! from the others.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_core::lane::Turns;
use tickover_service::ports::{ClassDepth, Clock as _, Depth, Queue as _, QueueError, Received};
use tickover_sqs::{receipt_of, split_receipt};

use super::bugs::Bug;
use super::world::World;

/// How long a receiver waits between two rounds through all classes.
const ROUND: Millis = Millis::from_secs(1);

/// Whose turn it is in the queues of a process.
#[derive(Default)]
pub struct Classes(Mutex<BTreeMap<QueueName, Turns>>);

/// The name of a class queue.
pub fn class_queue(queue: &str, class: Priority) -> String {
    format!("{queue}.{class}")
}

/// The queue in which the messages of a class wait.
pub fn place(world: &World, queue: &QueueName, class: Priority) -> QueueName {
    let apart = world.has_classes && !queue.is_reserved() && class != Priority::Normal;
    let name = apart.then(|| QueueName::parse(class_queue(queue.as_str(), class)).ok()).flatten();
    name.unwrap_or_else(|| queue.clone())
}

/// Whether it is a class queue, and so no queue of tasks.
pub fn is_class_queue(queue: &QueueName) -> bool {
    let ends = |class: Priority| queue.as_str().ends_with(&class_queue("", class));
    ends(Priority::High) || ends(Priority::Low)
}

/// The queue of a receipt's message, and its receipt there.
pub fn there<'a>(world: &World, queue: &QueueName, receipt: &'a str) -> (QueueName, &'a str) {
    let (class, receipt) = split_receipt(receipt);
    (place(world, queue, class), receipt)
}

/// The depth of all classes together.
pub async fn depth(world: &World, queue: &QueueName) -> Result<Depth, QueueError> {
    let mut all = Depth::default();
    for class in if world.has_classes { &Priority::ALL[..] } else { &[Priority::Normal] } {
        let there = place(world, queue, *class);
        if there != *queue || *class == Priority::Normal {
            let depth = world.messages.depth(&there).await?;
            all.visible += depth.visible;
            all.in_flight += depth.in_flight;
            all.delayed += depth.delayed;
        }
    }
    Ok(all)
}

/// The depth of one class.
pub async fn class_depth(
    world: &World,
    queue: &QueueName,
    class: Priority,
) -> Result<ClassDepth, QueueError> {
    let there = place(world, queue, class);
    Ok(ClassDepth { depth: world.messages.depth(&there).await?, apart: there != *queue })
}

impl Classes {
    /// Receives from all classes in turns, or from the queue where it has none.
    pub async fn receive(
        &self,
        world: &World,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        if !world.has_classes || queue.is_reserved() {
            return world.messages.receive(queue, max, visibility, wait).await;
        }
        let mut left = wait;
        loop {
            let received = self.receive_once(world, queue, max, visibility).await?;
            if !received.is_empty() || left.is_zero() {
                return Ok(received);
            }
            let round = left.min(ROUND);
            left = left.saturating_sub(round);
            world.clock.sleep_until(world.now().plus(round)).await;
        }
    }

    async fn receive_once(
        &self,
        world: &World,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
    ) -> Result<Vec<Received>, QueueError> {
        let mut received = Vec::new();
        for (class, most) in self.with(queue, |turns| turns.asks(u32::try_from(max).unwrap_or(u32::MAX))) {
            let most = usize::try_from(most).unwrap_or(max).min(max - received.len());
            if most == 0 || (class == Priority::Low && world.bug == Some(Bug::LowNeverAsked)) {
                continue;
            }
            let there = place(world, queue, class);
            let given = world.messages.receive(&there, most, visibility, Millis::ZERO).await?;
            let count = u32::try_from(given.len()).unwrap_or(u32::MAX);
            self.with(queue, |turns| match count {
                0 => turns.found_none(class),
                _ => turns.took(class, count, [true; 3]),
            });
            received.extend(given.into_iter().map(|given| {
                let receipt = receipt_of(class, given.receipt.clone());
                Received { receipt, ..given }
            }));
        }
        Ok(received)
    }

    fn with<T>(&self, queue: &QueueName, change: impl FnOnce(&mut Turns) -> T) -> T {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(turns.entry(queue.clone()).or_default())
    }
}

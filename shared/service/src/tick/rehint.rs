//! For a queue that forgets when its process ends: everything that would still be in one that lasts.

use tickover_core::decision::Effect;
use tickover_core::due::{TIMER_HORIZON, visible_at};
use tickover_core::hint::Hint;
use tickover_core::id::TaskId;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;
use tickover_core::timer::Timer;

use super::sweep::PAGE;
use crate::error::ServiceError;
use crate::ports::DueRange;
use crate::service::Service;

impl Service {
    /// Sends every live task's hint again, and the timers of instants that no tick will hand over. Returns how
    /// many messages that were.
    pub async fn hint_all(&self) -> Result<u64, ServiceError> {
        let mut sent = 0;
        for shard in 0..self.limits.due_shards {
            let mut cursor: Option<String> = None;
            loop {
                let everything = DueRange::until(shard, Timestamp::from_millis(i64::MAX));
                let page =
                    self.patiently(|| self.ports.store.due(everything, PAGE, cursor.as_deref())).await?;
                let ids: Vec<TaskId> = page.items.into_iter().map(|entry| entry.task).collect();
                let (tasks, _) = self.load_each(&ids).await?;
                for task in &tasks {
                    // The table may know a task whose queue's own record was never written.
                    self.ports.queue.open(&task.queue).await?;
                }
                let now = self.now();
                let effects: Vec<_> =
                    tasks.iter().flat_map(|task| [hint(task), timer(task, now)]).flatten().collect();
                sent += u64::try_from(effects.len()).unwrap_or(u64::MAX);
                self.publish(effects).await;
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(sent)
    }
}

/// The hint that a live task would have in a queue that lasts.
fn hint(task: &Task) -> Option<Effect> {
    let at = match &task.state {
        State::Pending(pending) if pending.hint_later => return None,
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.lease_expires_at,
        State::Ended(_) => return None,
    };
    Some(Effect::Dispatch { hint: Box::new(Hint::of(task)), at })
}

/// The timer of an instant that comes before the next tick is sure to hand it over.
fn timer(task: &Task, now: Timestamp) -> Option<Effect> {
    let at = visible_at(task).filter(|at| *at <= now.plus(TIMER_HORIZON))?;
    let due_at = task.due?.at;
    Some(Effect::Timer(Timer { task: task.id.clone(), at, due_at }))
}

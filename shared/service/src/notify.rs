//! Reports changes: a log line, the metrics, and an event in the events queue if there is one.
//!
//! Events are sent after the commit, and after its hints and timers. Each commit sends its events at most once: a
//! repeated commit that the store recognises is one commit. Events that can't be sent are logged and dropped, because
//! the table is the truth.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use tickover_core::decision::{Change, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionState, event as of_executions};
use tickover_core::id::QueueName;
use tickover_core::task::Task;
use tickover_core::task::event::{EventType, events};
use tickover_core::time::Timestamp;

use crate::crons;
use crate::history::Tallies;
use crate::ports::Outgoing;
use crate::service::Service;
use crate::telemetry;
use crate::{live_leases::LiveLeases, metric};

/// Events that wait for the end of their call. Each call sends all waiting events, so concurrent calls share batches.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    waiting: Mutex<Vec<Outgoing>>,
    pub(crate) live_leases: LiveLeases,
    pub(crate) tallies: Tallies,
}

impl Notifications {
    fn put(&self, of: &impl Display, body: Result<String, serde_json::Error>) {
        match body {
            Ok(body) => {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.push(Outgoing::plain(body, Millis::ZERO));
            }
            Err(error) => tracing::error!(%of, %error, "unsendable event"),
        }
    }

    fn take(&self) -> Vec<Outgoing> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Service {
    /// Logs and counts the changes of a commit, and keeps their events for [`Self::send_notifications`].
    pub(crate) fn notify(&self, writes: &[Write], now: Timestamp) {
        let is_wanted = self.ports.queue.knows(&QueueName::events());
        for change in writes.iter().filter_map(Write::change) {
            match change {
                Change::Task(before, after) => self.report_task(before, after, is_wanted, now),
                Change::Execution(before, after) => self.report_execution(before, after, is_wanted, now),
                Change::Cron(before, after) => crons::report(before, after, now),
            }
        }
    }

    fn report_task(&self, before: Option<&Task>, after: &Task, is_wanted: bool, now: Timestamp) {
        for mut event in events(before, after, now) {
            event.trace = self.carried(event.trace);
            telemetry::log_event(&event);
            metric::event(&event, metric::born_at(before, after));
            if let EventType::TaskStarted { waited, .. } = &event.what {
                self.notifications.tallies.started(&after.queue, *waited);
            }
            if let Some(status) = event.what.ended_as() {
                self.notifications.tallies.task_ended(&after.queue, status);
            }
            if is_wanted {
                self.notifications.put(&event.task_id, event.body());
            }
        }
        self.note_ended_lease(before, after);
        // If a parent or a cron waits for the end, the message may be the one that notifies it.
        if after.ended().is_some() && after.parent.is_none() && after.end_of_run().is_none() {
            self.ports.queue.forget(&after.queue, after.incarnation);
        }
    }

    fn report_execution(
        &self,
        before: Option<&Execution>,
        after: &Execution,
        is_wanted: bool,
        now: Timestamp,
    ) {
        if let Some(waited) = of_executions::turn_started(before, after) {
            metric::turn_started(&after.queue, waited);
            self.notifications.tallies.started(&after.queue, waited);
        }
        let is_waited_for = after.parent.is_some() || after.end_of_run().is_some();
        if matches!(after.state, ExecutionState::Ended(_)) && !is_waited_for {
            self.ports.queue.forget(&after.queue, after.incarnation);
        }
        for mut event in of_executions::events(before, after, now) {
            event.trace = self.carried(event.trace);
            telemetry::log_execution(&event);
            metric::execution(&event, after.created_at);
            if let Some(status) = event.what.ended_as() {
                self.notifications.tallies.execution_ended(&after.queue, status);
                self.waiters.ended(after);
            }
            if is_wanted {
                self.notifications.put(&event.execution_id, event.body());
            }
        }
    }

    fn note_ended_lease(&self, before: Option<&Task>, after: &Task) {
        let lease = |task: &Task| task.running().map(|running| running.lease);
        let held = before.and_then(lease).filter(|held| lease(after) != Some(*held));
        if let Some(held) = held {
            self.notifications.live_leases.ended(&held);
        }
    }

    /// Sends the waiting events. This never fails a call: no work depends on events.
    pub(crate) async fn send_notifications(&self) {
        let messages = self.notifications.take();
        if messages.is_empty() {
            return;
        }
        let results = match self.ports.queue.send(&QueueName::events(), &messages).await {
            Ok(results) => results,
            Err(error) => vec![Err(error); messages.len()],
        };
        let failed = results.iter().filter(|result| result.is_err()).count();
        metric::events(messages.len().saturating_sub(failed), failed);
        if let Some(error) = results.into_iter().find_map(Result::err) {
            tracing::warn!(failed, %error, "events not sent, and not sent again");
        }
    }

    /// Sets the gauge of leases that are kept alive: for a process that receives all heartbeats of the system.
    pub fn observe_heartbeats(&self) {
        metric::active_heartbeats(self.notifications.live_leases.count(self.now()));
    }
}

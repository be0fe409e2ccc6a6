//! The starts of tasks with a rate, reserved before their records are written.
//!
//! Only a task that could start at once has its start reserved here. The rule of a rate keeps one instant and no gaps, so
//! the start of a delayed task would push all later ones behind it: that is reserved at its claim, and so is the start of
//! each retry. If a process dies between the reservation and the record, one start is left out.

use tickover_core::duration::Millis;
use tickover_core::flow::{Paced, Rate};
use tickover_core::id::TaskId;
use tickover_core::retry::MaxAttempts;
use tickover_core::task::command::{Schedule, Start};

use super::schedule::{ScheduleRequest, digest};
use crate::error::ServiceError;
use crate::flow::recorded;
use crate::service::Service;

/// Most tasks that one read has.
const READ_MAX: usize = 100;

impl Service {
    /// Reserves the starts of these requests. One that was made before takes no second start, where its id or its key
    /// shows that.
    pub(super) async fn add_starts(&self, requests: &mut [Result<ScheduleRequest, ServiceError>]) {
        let needs = |request: &Result<ScheduleRequest, ServiceError>| {
            request.as_ref().is_ok_and(|request| {
                // Of a key, only one task is scheduled: its start is reserved once that is clear. In a line it would be lost.
                self.starts_now(request, request.start)
                    && request.flow.unique.is_none()
                    && !request.asked.in_line
            })
        };
        if requests.iter().any(needs) {
            // Boxed, because the future of each request would contain all of this, and few have a rate.
            Box::pin(self.reserve_new(requests.iter_mut().filter(|one| needs(one)))).await;
        }
    }

    /// Has those begin in the line that need a place where none is free: otherwise each of them would be claimed once only to
    /// find that out.
    pub(super) async fn send_to_lines(&self, requests: &mut [Result<ScheduleRequest, ServiceError>]) {
        let needs = |request: &ScheduleRequest| {
            !request.flow.concurrency.is_empty() && request.start == Start::After(Millis::ZERO)
        };
        if requests.iter().flatten().any(needs) {
            // Boxed, because the future of each request would contain all of this, and few have a limit.
            Box::pin(self.find_full(requests.iter_mut().flatten().filter(|one| needs(one)))).await;
        }
    }

    async fn find_full(&self, requests: impl Iterator<Item = &mut ScheduleRequest>) {
        let mut requests: Vec<_> =
            requests.map(|request| (recorded(&request.flow, None).gates, request)).collect();
        let gates = self.read_gates(requests.iter().flat_map(|(needed, _)| needed)).await;
        let now = self.now();
        for (needed, request) in &mut requests {
            request.asked.in_line = gates.lack_place(needed, now);
        }
    }

    async fn reserve_new(&self, requests: impl Iterator<Item = &mut Result<ScheduleRequest, ServiceError>>) {
        let mut requests: Vec<&mut ScheduleRequest> = requests.filter_map(|one| one.as_mut().ok()).collect();
        let ids: Vec<TaskId> = requests.iter().filter_map(|request| request.id.clone()).collect();
        let known = self.known_ids(ids).await;
        let mut rates = Vec::with_capacity(requests.len());
        for request in &requests {
            let is_known = request.id.as_ref().is_some_and(|id| known.contains(id))
                || self.has_keyed(request.idempotency_key.as_deref()).await;
            rates.push(request.flow.rate.clone().filter(|_| !is_known));
        }
        let rates: Vec<Option<&Rate>> = rates.iter().map(Option::as_ref).collect();
        let starts = self.reserve_starts(&rates).await;
        for (request, start) in requests.iter_mut().zip(starts) {
            request.asked.start = start;
        }
    }

    /// Which of these ids are taken. An error only costs a start.
    pub(crate) async fn known_ids(&self, mut ids: Vec<TaskId>) -> Vec<TaskId> {
        ids.sort_unstable();
        ids.dedup();
        let mut known = vec![];
        for some in ids.chunks(READ_MAX) {
            let (tasks, _unreadable) = self.load_each(some).await.unwrap_or_default();
            known.extend(tasks.into_iter().filter(|task| !task.is_gone(self.now())).map(|task| task.id));
        }
        known
    }

    async fn has_keyed(&self, key: Option<&str>) -> bool {
        let Some(key) = key else { return false };
        let digest = digest(&["key", key]);
        let Ok(Some(stored)) = self.with_retries(|| self.ports.store.key(&digest)).await else {
            return false;
        };
        self.keyed_task(&stored).await.is_ok_and(|task| task.is_some())
    }

    /// Whether a task with a rate could start at once.
    fn starts_now(&self, request: &ScheduleRequest, start: Start) -> bool {
        let is_now = match start {
            Start::After(delay) => delay.is_zero(),
            Start::At(instant) => instant <= self.now(),
        };
        let is_skipped = request.retry.max_attempts == MaxAttempts::Skip;
        request.flow.rate.is_some() && is_now && request.flow.debounce.is_none() && !is_skipped
    }

    /// The command with a start of its own, once it is clear that its task will exist.
    pub(super) async fn with_start(
        &self,
        request: &ScheduleRequest,
        mut schedule: Box<Schedule>,
    ) -> Box<Schedule> {
        if !schedule.in_line && self.starts_now(request, schedule.start) {
            let start = self.reserve_starts(&[request.flow.rate.as_ref()]).await.pop().flatten();
            schedule.flow = recorded(&request.flow, start);
        }
        schedule
    }

    /// Gives back the start of a request that has led to no new task.
    pub(crate) async fn give_unused_back(&self, start: Option<&Paced>) {
        if let Some(start) = start {
            self.give_start_back(start).await;
        }
    }
}

#[cfg(test)]
mod tests;

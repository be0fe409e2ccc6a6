//! Tasks that one call of a step's code runs together. Each has its own lease, heartbeats and end.

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::{BoxFuture, Either, join, join_all, select};
use futures::stream::{self, FuturesUnordered};
use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_service::claim::ClaimedTask;

use super::Worker;
use super::pulse::Pulse;
use super::task::{Ran, TaskEnd, info_of};
use crate::busy::watch;
use crate::registry::{ErasedStep, StepFailed};
use crate::step::StepInfo;
use crate::turn::panics;

/// Reports of a batch that are in progress at the same time.
const REPORTS_AT_ONCE: usize = 50;

/// A task of a batch that has started.
struct Member {
    claimed: ClaimedTask,
    pulse: Pulse,
    left: Left,
}

/// Whether a task still takes part in its batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    No,
    /// A cancellation was requested. The code can't be stopped for one task of several, so its result counts.
    Asked,
    /// Another worker may have the task.
    Lost,
}

/// How the code of a batch ended.
enum Outcome {
    /// One result for each task.
    Done(Vec<Result<Json, StepFailed>>),
    Panicked(String),
    /// No task needs it any more.
    Stopped,
}

impl Worker {
    /// Runs an attempt of tasks of one kind whose step takes batches, and reports each outcome. Returns how each task
    /// ended, in no order.
    pub(crate) async fn attempt_together(&self, claimed: Vec<ClaimedTask>) -> Vec<(TaskId, TaskEnd)> {
        let kind = claimed.first().map(|claimed| claimed.task.kind.clone());
        let Some(step) = kind.and_then(|kind| self.registry.step(kind.as_str())) else { return vec![] };
        let (mut tasks, mut members, mut late) = (vec![], vec![], vec![]);
        for claimed in claimed {
            let Some(input) = self.input_in_time(&claimed) else {
                late.push(claimed);
                continue;
            };
            let info = info_of(step, &claimed);
            members.push(Member::new(self, claimed, &info));
            tasks.push((input, info));
        }
        if let Some(last) = members.last() {
            last.pulse.keeper.begin().await;
        }
        // The others start meanwhile: their leases may end before these are given back.
        let late = join_all(late.iter().map(|claimed| self.give_back(claimed)));
        let (mut ends, late) = join(self.run_and_report(step, tasks, members), late).await;
        ends.extend(late);
        ends
    }

    async fn run_and_report(
        &self,
        step: &ErasedStep,
        tasks: Vec<(Json, StepInfo)>,
        mut members: Vec<Member>,
    ) -> Vec<(TaskId, TaskEnd)> {
        if members.is_empty() {
            return vec![];
        }
        let outcome = self.run_members(step, tasks, &mut members).await;
        let results = outcome.by_member(&members);
        let reports = members.iter().zip(results).map(|(member, ran)| async {
            let end = self.report_end(&member.claimed, ran, member.pulse.unsent_values()).await;
            (member.claimed.task.id.clone(), end)
        });
        let reports: Vec<_> = reports.collect();
        stream::iter(reports).buffer_unordered(REPORTS_AT_ONCE).collect().await
    }

    /// Runs the code, and keeps the lease of each task meanwhile.
    async fn run_members(
        &self,
        step: &ErasedStep,
        tasks: Vec<(Json, StepInfo)>,
        members: &mut [Member],
    ) -> Outcome {
        let states = self.registry.states().clone();
        let Some(code) = step.run_together(tasks, &states) else { return Outcome::Stopped };
        let body = watch().over(step.kind, AssertUnwindSafe(code).catch_unwind().boxed());
        let mut body = body.boxed();
        let (mut left, mut alive) = (vec![Left::No; members.len()], FuturesUnordered::new());
        for (index, member) in members.iter_mut().enumerate() {
            alive.push(self.keep_member(index, member));
        }
        let outcome = loop {
            let (index, why, member) = match select(body, alive.next()).await {
                Either::Left((Ok(results), _)) => break Outcome::Done(results),
                Either::Left((Err(panic), _)) => break Outcome::Panicked(panics::message_of(&*panic)),
                Either::Right((Some(ended), rest)) => {
                    body = rest;
                    ended
                }
                Either::Right((None, _)) => break Outcome::Stopped,
            };
            left[index] = why;
            if left.iter().all(|left| *left != Left::No) {
                break Outcome::Stopped;
            }
            if why == Left::Asked {
                alive.push(self.keep_member(index, member));
            }
        };
        drop(alive);
        for (member, left) in members.iter_mut().zip(left) {
            member.left = left;
        }
        outcome
    }

    /// Keeps a task's lease until it is lost or a cancellation was requested.
    fn keep_member<'m>(
        &'m self,
        index: usize,
        member: &'m mut Member,
    ) -> BoxFuture<'m, (usize, Left, &'m mut Member)> {
        async move {
            let Member { claimed, pulse, .. } = &mut *member;
            let left = match self.keep_alive(claimed, pulse).await {
                Ran::Cancelled => Left::Asked,
                Ran::Lost | Ran::Done(_) | Ran::Panicked(_) => Left::Lost,
            };
            (index, left, member)
        }
        .boxed()
    }
}

impl Member {
    fn new(worker: &Worker, claimed: ClaimedTask, info: &StepInfo) -> Self {
        let pulse = Pulse::new(worker, &claimed, info);
        Self { claimed, pulse, left: Left::No }
    }
}

impl Outcome {
    /// How the attempt of each member ended.
    fn by_member(self, members: &[Member]) -> Vec<Ran> {
        let all: Vec<Ran> = match self {
            Self::Done(results) => results.into_iter().map(Ran::Done).collect(),
            Self::Panicked(text) => members.iter().map(|_| Ran::Panicked(text.clone())).collect(),
            Self::Stopped => members.iter().map(|_| Ran::Cancelled).collect(),
        };
        let ended = all.into_iter().zip(members);
        let ended = ended.map(|(ran, member)| match member.left {
            Left::Lost => Ran::Lost,
            Left::No | Left::Asked => ran,
        });
        ended.collect()
    }
}

//! A run of another system, replayed with the code of a test.

use std::fmt;

use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, ExecutionStatus, FORMAT};
use tickover_core::id::StepName;
use tickover_core::payload::{Json, Payload};
use tickover_wire::answer::{EXPORT_FORMAT, ExportAnswer};
use tickover_wire::read;

use super::TestEnv;
use crate::registry::INVALID_INPUT;
use crate::turn::retrace::{Retraced, name_of, retrace};

/// How much of a stored value an error shows, in characters.
const STORED_SHOWN: usize = 400;

/// Where a replay has brought the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It waits: for what the run waits for, or for work that it would start next. These are the names of the steps,
    /// sleeps and waits, as a timeline has them.
    Waits(Vec<String>),
    /// It has completed with this output, as JSON.
    Completed(String),
    /// It has failed with this error.
    Failed(String),
    /// It has continued in a new run.
    ContinuedAsNew,
}

/// Why a run can't be replayed, or why the code doesn't fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It isn't an export, or one of another version of Tickover.
    #[error("this isn't an export that this version reads: {0}")]
    Unreadable(String),
    /// The export has no inputs and results.
    #[error("the export has no inputs and results, which a replay needs: make it with `--payloads`")]
    WithoutPayloads,
    /// A payload had expired when the export was made: the input, or that of a step, captured value or event of this name.
    #[error("the payload of {0} had expired when the run was exported: nothing can be replayed without it")]
    PayloadExpired(String),
    /// The test has no workflow of this name.
    #[error("the test has no workflow named {0:?}")]
    UnknownWorkflow(String),
    /// A stored result doesn't fit the type that the code expects, or the input doesn't.
    #[error("{problem}{}", .stored.as_ref().map(|stored| format!(" (stored: {stored})")).unwrap_or_default())]
    Misfit {
        /// The name of the step, captured value or wait; `None` for the input.
        step: Option<String>,
        /// What doesn't fit, with the type that the code expects.
        problem: String,
        /// The stored value, cut to its beginning.
        stored: Option<String>,
    },
    /// The code doesn't ask for what the run has: something was renamed, moved or left out. This is the first place.
    #[error("{}, the run has `{stored}`, and the code {}", place(.after.as_ref()), instead(.asked.as_ref()))]
    Diverged {
        /// The name in the history before it, if there is one.
        after: Option<String>,
        /// The name that the code doesn't ask for.
        stored: String,
        /// The first name for which the code asks, and that the run doesn't have.
        asked: Option<String>,
    },
    /// The code waits for a future that isn't of its context.
    #[error(
        "{}, the code waits for something that isn't its context's, and nothing durable wakes it: put it into a step",
        place(.after.as_ref())
    )]
    Foreign {
        /// The name of the last outcome that the code has got, if there is one.
        after: Option<String>,
    },
    /// The code was replayed twice, and did something else the second time.
    #[error(
        "{}, the code does once this: {first}; and in the next replay this: {second}; take the time and random values \
         from `ctx`, and collections with an order",
        .after.as_ref().map_or_else(|| "at its beginning".to_owned(), |after| format!("after {after}"))
    )]
    Random {
        /// What it asked for before, if it did, with its input.
        after: Option<String>,
        /// What it did in the first replay.
        first: String,
        /// What it did in the second one.
        second: String,
    },
    /// The run has ended with this status, and the code goes on.
    #[error("the run is {}, and the code goes on after it: it waits for {}", .status.as_str(), .names.join(", "))]
    GoesOn {
        /// The run's status.
        status: ExecutionStatus,
        /// What the code waits for.
        names: Vec<String>,
    },
    /// The code has panicked, or can't go on.
    #[error("{0}")]
    Code(String),
}

impl TestEnv {
    /// Runs the code of this test against the history of a run of another system: the output of `tickover execution
    /// export ID --payloads`, or [`Api::export`](crate::client::Api::export) as JSON. Nothing new starts: the replay ends
    /// where the history does. So the executions that are open in production can be tested before a deployment.
    ///
    /// It fails if a stored result or the input doesn't fit the type that the code expects, if the code doesn't ask for a
    /// result (a step was renamed or left out), if it waits for what isn't its context's, and if a run that has ended would
    /// go on. The error names the first place. The code is replayed twice: it fails too if the second replay differs, by
    /// a random value, the time, or the order of a `HashMap`.
    ///
    /// ```
    /// use tickover::prelude::*;
    /// use tickover::test::{Replayed, TestEnv};
    ///
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, cents: u32) -> Result<u32> {
    ///     let charged = ctx.step(charge(cents)).await?;
    ///     ctx.sleep("settle", "7d").await?;
    ///     Ok(charged)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// # let production = TestEnv::new().workflow(order).step::<charge>();
    /// # let run = production.start(&order, 500).await?;
    /// # production.advance("1d").await?;
    /// # let export = serde_json::to_string(&production.client().api().export(run.id(), None, true).await?)?;
    /// let env = TestEnv::new().workflow(order);
    /// // In a test of yours: include_str!("order-7.json")
    /// assert_eq!(env.replay(&export).await?, Replayed::Waits(vec!["settle".to_owned()]));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replay(&self, export: &str) -> Result<Replayed, ReplayError> {
        let unreadable = |problem: &dyn fmt::Display| ReplayError::Unreadable(problem.to_string());
        let export: ExportAnswer = read::answer(export.as_bytes()).map_err(|problem| unreadable(&problem))?;
        if export.format != EXPORT_FORMAT || export.cursor.is_some() {
            return Err(unreadable(&format!("its format is {}, or it is a part only", export.format)));
        }
        if !export.payloads {
            return Err(ReplayError::WithoutPayloads);
        }
        let execution: Execution =
            serde_json::from_str(export.execution.0.as_str()).map_err(|problem| unreadable(&problem))?;
        if execution.format != FORMAT {
            return Err(unreadable(&format!("its record is of format {}", execution.format)));
        }
        let entries = export.entries.iter().map(|entry| serde_json::from_str(entry.0.as_str()));
        let journal: Vec<Entry> =
            entries.collect::<Result<_, _>>().map_err(|problem| unreadable(&problem))?;
        if let Some(name) = expired(&execution, &journal) {
            return Err(ReplayError::PayloadExpired(name));
        }
        let closed = execution.closed().map(|_| execution.status());
        let workflow = execution.workflow.to_string();
        self.registry.check().map_err(|problem| ReplayError::Code(problem.to_string()))?;
        let again = retrace(&self.service, &self.registry, execution.clone(), journal.clone()).await;
        let input = execution.input.clone();
        let (retraced, asked) = retrace(&self.service, &self.registry, execution, journal.clone()).await;
        if let Some(random) = difference((&again.0, again.1), (&retraced, asked)) {
            return Err(random);
        }
        match retraced {
            Retraced::Unknown => Err(ReplayError::UnknownWorkflow(workflow)),
            Retraced::Broken(problem) => Err(ReplayError::Code(problem)),
            Retraced::Misfit(failure, step) => {
                let stored = step
                    .as_deref()
                    .map_or_else(|| input.as_ref().and_then(inline), |step| stored(&journal, step));
                Err(ReplayError::Misfit { step, problem: failure.message, stored })
            }
            Retraced::Diverged { stored, asked } => Err(diverged(&journal, &stored, &asked)),
            Retraced::Foreign(after) => {
                Err(ReplayError::Foreign { after: after.map(|after| after.to_string()) })
            }
            // A run that has begun with nothing fails by such an input. This one hasn't failed.
            Retraced::Ended(Err(error))
                if closed.is_none() && journal.is_empty() && error.code() == INVALID_INPUT =>
            {
                let (problem, stored) = (error.message().to_owned(), input.as_ref().and_then(inline));
                Err(ReplayError::Misfit { step: None, problem, stored })
            }
            Retraced::Waits(names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                match closed {
                    Some(status @ (ExecutionStatus::Completed | ExecutionStatus::Failed)) => {
                        Err(ReplayError::GoesOn { status, names })
                    }
                    // A deadline or an operator may end a run anywhere.
                    Some(_) | None => Ok(Replayed::Waits(names)),
                }
            }
            Retraced::Ended(Ok(output)) => Ok(Replayed::Completed(
                output.map_or_else(|| "null".to_owned(), |output| output.as_str().to_owned()),
            )),
            Retraced::Ended(Err(error)) => Ok(Replayed::Failed(error.to_string())),
            Retraced::ContinuedAsNew => Ok(Replayed::ContinuedAsNew),
        }
    }
}

fn place(after: Option<&String>) -> String {
    after.map_or_else(|| "at the beginning".to_owned(), |after| format!("after `{after}`"))
}

fn instead(asked: Option<&String>) -> String {
    match asked {
        Some(asked) => format!("asks for `{asked}`: was it renamed?"),
        None => "doesn't ask for it: was it left out?".to_owned(),
    }
}

/// The first of the stored names, by the history, that the code doesn't ask for.
fn diverged(journal: &[Entry], stored: &[StepName], asked: &[StepName]) -> ReplayError {
    let names: Vec<&StepName> = journal.iter().filter_map(|entry| name_of(&entry.what)).collect();
    let at = names.iter().position(|name| stored.contains(name)).unwrap_or_default();
    let first = names.get(at).copied().or(stored.first()).map(ToString::to_string);
    let after = names.get(..at).and_then(<[_]>::last).map(ToString::to_string);
    let asked = asked.first().map(ToString::to_string);
    ReplayError::Diverged { after, stored: first.unwrap_or_default(), asked }
}

/// Where two replays differ.
fn difference(
    (one, asked_once): (&Retraced, Vec<String>),
    (other, asked_then): (&Retraced, Vec<String>),
) -> Option<ReplayError> {
    let asked = |asked: &[String], at: usize| asked.get(at).map(|asked| format!("it asks for {asked}"));
    let common = asked_once.iter().zip(&asked_then).take_while(|(one, other)| one == other).count();
    let first = asked(&asked_once, common).unwrap_or_else(|| ending(one));
    let second = asked(&asked_then, common).unwrap_or_else(|| ending(other));
    let after = common.checked_sub(1).and_then(|last| asked_once.get(last).cloned());
    (first != second).then_some(ReplayError::Random { after, first, second })
}

/// How a replay has ended.
fn ending(retraced: &Retraced) -> String {
    let list =
        |names: &[StepName]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match retraced {
        Retraced::Waits(names) => format!("it waits for {}", list(names)),
        Retraced::Ended(Ok(output)) => {
            format!("it ends with {}", output.as_ref().map_or("nothing", Json::as_str))
        }
        Retraced::Ended(Err(error)) => format!("it fails with {error}"),
        Retraced::ContinuedAsNew => "it continues as new".to_owned(),
        Retraced::Misfit(failure, _) => failure.message.clone(),
        Retraced::Diverged { stored, .. } => format!("it doesn't ask for {}", list(stored)),
        Retraced::Foreign(_) => "it waits for something that isn't its context's".to_owned(),
        Retraced::Broken(problem) => problem.clone(),
        Retraced::Unknown => "it isn't there".to_owned(),
    }
}

/// The first payload that isn't in the export.
fn expired(execution: &Execution, journal: &[Entry]) -> Option<String> {
    let is_missing = |payload: &Payload| payload.blob().is_some();
    if execution.input.as_ref().is_some_and(is_missing) {
        return Some("the input".to_owned());
    }
    let entry = journal.iter().find(|entry| entry.payload().is_some_and(is_missing))?;
    match &entry.what {
        Happened::Step { name, .. } | Happened::Captured { name, .. } => Some(name.to_string()),
        Happened::Event { name, .. } => Some(format!("event {name}")),
        _ => None,
    }
}

/// The latest stored value of a name.
fn stored(journal: &[Entry], name: &str) -> Option<String> {
    let is_of = |entry: &&Entry| match &entry.what {
        Happened::Step { name: of, .. } | Happened::Captured { name: of, .. } => of.as_str() == name,
        _ => false,
    };
    inline(journal.iter().rev().find(is_of)?.payload()?)
}

fn inline(payload: &Payload) -> Option<String> {
    match payload {
        Payload::Inline(json) => Some(excerpt(json)),
        Payload::Blob(_) => None,
    }
}

fn excerpt(json: &Json) -> String {
    let shown: String = json.as_str().chars().take(STORED_SHOWN).collect();
    if shown.len() < json.len() { format!("{shown}…") } else { shown }
}

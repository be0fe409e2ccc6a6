//! A run of another system, replayed with the code of a test.

use std::fmt;

use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, ExecutionStatus, FORMAT};
use tickover_core::payload::{Json, Payload};
use tickover_wire::answer::{EXPORT_FORMAT, ExportAnswer};
use tickover_wire::read;

use super::TestEnv;
use crate::turn::retrace::{Retraced, retrace};

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
    /// A stored result doesn't fit the code, or the code doesn't ask for it. `step` is its name, if it is a single one,
    /// and `stored` its value.
    #[error("{problem}{}", .stored.as_ref().map(|stored| format!(" (stored: {stored})")).unwrap_or_default())]
    Misfit {
        /// The name of the step, captured value or wait.
        step: Option<String>,
        /// What doesn't fit, with the type that the code expects.
        problem: String,
        /// The stored value, cut to its beginning.
        stored: Option<String>,
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
    /// It fails if a stored result doesn't fit the type that the code expects, if the code doesn't ask for one (a step
    /// was renamed or left out), and if a run that has ended would go on.
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
        match retrace(&self.service, &self.registry, execution, journal.clone()).await {
            Retraced::Unknown => Err(ReplayError::UnknownWorkflow(workflow)),
            Retraced::Broken(problem) => Err(ReplayError::Code(problem)),
            Retraced::Misfit(failure, step) => {
                let stored = step.as_deref().and_then(|step| stored(&journal, step));
                Err(ReplayError::Misfit { step, problem: failure.message, stored })
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
    match journal.iter().rev().find(is_of)?.payload()? {
        Payload::Inline(json) => Some(excerpt(json)),
        Payload::Blob(_) => None,
    }
}

fn excerpt(json: &Json) -> String {
    let shown: String = json.as_str().chars().take(STORED_SHOWN).collect();
    if shown.len() < json.len() { format!("{shown}…") } else { shown }
}

//! `tickover explain`: why a task or an execution is in its state, what happens next, and when. It uses only the API's
//! answers.

mod execution;
mod task;
mod timeline;

use std::collections::BTreeMap;
use std::fmt::Display;

use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::id::TaskId;
use tickover_core::time::Timestamp;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;
use tickover_wire::answer::ExecutionView;
use tickover_wire::request::PageQuery;
use tickover_wire::{Instant, PageLimit};

use crate::argument::name;
use crate::describe::{Found, find};
use crate::show::print;

/// Longer distances are shown without milliseconds.
const COARSE: Millis = Millis::from_secs(10);
/// How many remote steps' tasks are read to explain what an execution waits for.
const TASKS_READ_MAX: usize = 10;

/// Options of `tickover explain`.
#[derive(clap::Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The id of a task, or of an execution if there is no such task
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
}

/// Explains the state of a task or an execution.
pub(crate) async fn run(args: ExplainArgs, client: &Client) -> anyhow::Result<()> {
    match find(&args.id, client).await? {
        Found::Task(found) => print(&task::text(&found, SystemClock.now())),
        Found::Execution(found) => print(&explained(&found, client).await?),
    }
}

/// The explanation of an execution's state, as text.
pub(crate) async fn explained(execution: &ExecutionView, client: &Client) -> anyhow::Result<String> {
    let events = if execution.pending_events > 0 {
        let one = PageQuery { limit: Some(PageLimit(1)), cursor: None };
        client.api().events(&execution.id, &one).await?.counts
    } else {
        BTreeMap::new()
    };
    let timeline = client.api().timeline(&execution.id, None).await?.entries;
    let (unused, not_undone) = (timeline::unused(&timeline), timeline::not_undone(&timeline));
    let now = SystemClock.now();
    let waits = execution.waits_for.iter().flatten();
    let mut tasks = BTreeMap::new();
    for id in waits.filter_map(|wait| wait.task.as_ref()).take(TASKS_READ_MAX) {
        tasks.extend(task_status(id, client, now).await?.map(|status| (id.clone(), status)));
    }
    let operated = timeline::operated(&timeline, now);
    Ok(execution::text(execution, &execution::Facts { events, operated, unused, not_undone, tasks }, now))
}

/// The status of a remote step, unless its task has been deleted.
async fn task_status(id: &TaskId, client: &Client, now: Timestamp) -> anyhow::Result<Option<String>> {
    match client.api().task(id).await {
        Ok(answer) => {
            let reason = task::reason(&answer.task, now);
            Ok(Some(format!("{}, as kind {}: {reason}", answer.task.status, answer.task.kind)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `2026-01-31T12:00:00.000Z (in 5s)`.
fn moment(at: Instant, now: Timestamp) -> String {
    let distance = |span: Millis| {
        let rounded = if span >= COARSE { Millis::from_secs(span.as_secs_floor()) } else { span };
        rounded.to_string()
    };
    let relative = match at.0.cmp(&now) {
        std::cmp::Ordering::Less => format!("{} ago", distance(now.since(at.0))),
        std::cmp::Ordering::Equal => "now".to_owned(),
        std::cmp::Ordering::Greater => format!("in {}", distance(at.since(now))),
    };
    format!("{} ({relative})", at.to_rfc3339())
}

/// A command to try, with the values that it takes: behind `--` if one of them would be read as an option.
fn command(words: &str, values: &[&dyn Display]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let mark = if values.iter().any(|value| value.starts_with('-')) { "-- " } else { "" };
    format!("`tickover {words} {mark}{}`", values.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn a_command_to_try_is_read_as_it_is_meant_whatever_the_id() {
        for words in ["explain", "retry", "execution resume", "execution events", "execution terminate"] {
            for id in ["t1", "-h", "--json", "-"] {
                let text = command(words, &[&id]);
                let read = Cli::try_parse_from(text.trim_matches('`').split(' '));
                assert!(format!("{:?}", read.unwrap().command).contains(&format!("({id:?})")), "{text}");
            }
        }
        for words in ["event", "execution retry-step"] {
            let text = command(words, &[&"-x", &"-y"]);
            let read =
                format!("{:?}", Cli::try_parse_from(text.trim_matches('`').split(' ')).unwrap().command);
            assert!(read.contains(r#"("-x")"#) && read.contains(r#"("-y")"#), "{read}");
        }
        assert_eq!(command("explain", &[&"t1"]), "`tickover explain t1`");
    }
}

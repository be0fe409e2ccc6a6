//! The queries of lists.

use tickover_core::execution::ExecutionStatus;
use tickover_core::failure::recorded_code;
use tickover_core::limits::PAGE_DEFAULT;
use tickover_core::task::Status;
use tickover_service::ports::{ExecutionFilter, Period, TaskFilter};
use tickover_wire::request::{ExecutionsQuery, PageQuery, Statuses, TasksQuery};
use tickover_wire::{Cursor, FailureCode, Instant, Label, PageLimit};

/// The filter of a list, and the page of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListQuery<T> {
    pub(crate) of: T,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

/// A query for tasks.
pub(crate) fn tasks(given: TasksQuery) -> ListQuery<TaskFilter> {
    let statuses = statuses(given.status, given.include_timed_out, (Status::Failed, Status::TimedOut));
    let filter = TaskFilter {
        queue: given.queue,
        statuses,
        kind: given.kind,
        created_from: given.created_from.map(|Instant(at)| at),
        created_before: given.created_before.map(|Instant(at)| at),
        ended: period(given.ended_from, given.ended_before),
        stuck: given.stuck == Some(true),
        id_prefix: given.id_prefix,
        label: given.label.map(|Label { name, value }| (name, value)),
        error: given.error.map(|FailureCode(code)| recorded_code(code)),
    };
    list(filter.narrowed(), given.limit, given.cursor)
}

/// A query for executions.
pub(crate) fn executions(given: ExecutionsQuery) -> ListQuery<ExecutionFilter> {
    let failed = (ExecutionStatus::Failed, ExecutionStatus::TimedOut);
    let statuses = statuses(given.status, given.include_timed_out, failed);
    let filter = ExecutionFilter {
        workflow: given.workflow,
        statuses,
        started_from: given.started_from.map(|Instant(at)| at),
        started_before: given.started_before.map(|Instant(at)| at),
        ended: period(given.ended_from, given.ended_before),
        stuck: given.stuck == Some(true),
        id_prefix: given.id_prefix,
        label: given.label.map(|Label { name, value }| (name, value)),
        error: given.error.map(|FailureCode(code)| recorded_code(code)),
    };
    list(filter.narrowed(), given.limit, given.cursor)
}

/// A query for a page of a list without filters.
pub(crate) fn page(given: PageQuery) -> ListQuery<()> {
    list((), given.limit, given.cursor)
}

/// A period by its bounds.
pub(crate) fn period(from: Option<Instant>, before: Option<Instant>) -> Period {
    Period { from: from.map(|Instant(at)| at), before: before.map(|Instant(at)| at) }
}

fn list<T>(of: T, limit: Option<PageLimit>, cursor: Option<Cursor>) -> ListQuery<T> {
    let limit = limit.map_or(PAGE_DEFAULT, |PageLimit(limit)| limit);
    ListQuery { of, limit, cursor: cursor.map(|Cursor(cursor)| cursor) }
}

/// Each status once. On request, `failed` includes `timed_out`.
fn statuses<T: Ord>(
    given: Option<Statuses<T>>,
    include_timed_out: Option<bool>,
    (failed, timed_out): (T, T),
) -> Vec<T> {
    let mut statuses = given.map_or(vec![], |Statuses(statuses)| statuses);
    if include_timed_out == Some(true) && statuses.contains(&failed) {
        statuses.push(timed_out);
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

#[cfg(test)]
mod tests {
    use tickover_core::error::Reject;
    use tickover_wire::read;

    use super::*;

    fn read(query: &[(&str, &str)]) -> Result<ListQuery<TaskFilter>, Reject> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        read::query(&query.iter().map(owned).collect::<Vec<_>>()).map(tasks)
    }

    #[test]
    fn statuses_are_separated_by_commas_or_repeated() {
        let expected = vec![Status::Pending, Status::Running];
        assert_eq!(read(&[("status", "running,pending")]).unwrap().of.statuses, expected);
        let twice = [("status", "running"), ("status", "pending"), ("status", "running")];
        assert_eq!(read(&twice).unwrap().of.statuses, expected);
    }

    #[test]
    fn failed_includes_timed_out_on_request_only() {
        let failed = |flag| read(&[("include_timed_out", flag), ("status", "failed")]).unwrap().of.statuses;
        assert_eq!(failed("false"), [Status::Failed]);
        assert_eq!(failed("true"), [Status::Failed, Status::TimedOut]);
        assert_eq!(read(&[("include_timed_out", "true")]).unwrap().of.statuses, []);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for (name, value) in [
            ("queue", ""),
            ("queue", "a b"),
            ("status", "done"),
            ("status", ""),
            ("include_timed_out", "1"),
            ("limit", "0"),
            ("limit", "501"),
            ("limit", "ten"),
            ("state", "pending"),
        ] {
            let Err(Reject::InvalidRequest { field, .. }) = read(&[(name, value)]) else { panic!("{name}") };
            assert_eq!(field, name);
        }
        let limit = read(&[("limit", "501")]).unwrap_err();
        assert_eq!(limit.to_string(), "limit: expected a whole number from 1 to 500, found `501`");
        let unknown = read(&[("statuses", "pending")]).unwrap_err();
        assert_eq!(unknown.to_string(), "statuses: unknown parameter; did you mean `status`?");
        let twice = read(&[("limit", "1"), ("limit", "2")]).unwrap_err();
        assert_eq!(twice.to_string(), "limit: expected once, found twice");
    }
}

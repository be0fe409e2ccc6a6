//! Executions of all workflows: by label, by error, or by status, and those that have completed by their workflow.

use std::collections::BTreeMap;

use rusqlite::{Connection, ToSql};
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::ExecutionId;
use tickover_core::time::Timestamp;
use tickover_service::ports::{ExecutionCount, ExecutionFilter, Page};

use super::{between_commas, select_list};
use crate::error::Failure;
use crate::read::{before, page_of_ids, positions};
use crate::record::{corrupt, list_of, workflow_of};

/// The name of the list of executions, in its cursors.
const EXECUTIONS: &str = "executions";

/// Behind the names of all lists of executions, in the order of `SQLite`.
const FIRST_LIST: &str = "workflow ";
const BEHIND_ALL_LISTS: &str = "workflow!";

/// The lists of executions. Each has the list and the error as its seventh and eighth parameters.
macro_rules! select_executions {
    (from $from:literal, at $at:literal, id $id:literal, where $condition:literal) => {
        select_list!(
            from $from, at $at, id $id,
            where $condition " AND (?7 IS NULL OR list = ?7) AND (?8 IS NULL OR error = ?8)"
        )
    };
}

const BY_LABEL: &str = select_executions!(
    from "label JOIN record ON record.row = label.row", at "label.at", id "label.id",
    where "label.kind = 1 AND label.name = ?9 AND label.value = ?10"
);
const BY_ERROR: &str = select_executions!(
    from "record", at "list_at", id "record.id",
    where "kind = 1 AND error = ?8 AND error IS NOT NULL"
);
const BY_STATUS: &str = select_executions!(
    from "record", at "list_at", id "record.id",
    where "kind = 1 AND status = ?9 AND status <> 'completed'"
);
const BY_WORKFLOW: &str = select_executions!(from "record", at "list_at", id "record.id", where "list = ?9");

/// Ids of executions that fit, latest start first.
pub(crate) fn matching(
    connection: &Connection,
    filter: &ExecutionFilter,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<ExecutionId>, Failure> {
    let start = before(EXECUTIONS, cursor)?.at_most(filter.started_before);
    let from = filter.started_from.map_or(i64::MIN, Timestamp::as_millis);
    let list = filter.workflow.as_ref().map(list_of);
    let statuses = between_commas(filter.statuses.iter().map(|status| status.as_str()));
    let most = limit + 1;
    let prefix = filter.id_prefix.as_ref().map(ExecutionId::as_str);
    let common: [&dyn ToSql; 8] =
        [&start.at, &start.id, &from, &statuses, &prefix, &most, &list, &filter.error];
    let find = |sql: &str, more: &[&dyn ToSql]| positions(connection, sql, &[&common, more].concat());

    let mut found = if let Some((name, value)) = &filter.label {
        find(BY_LABEL, &[name, value])?
    } else if filter.error.is_some() {
        find(BY_ERROR, &[])?
    } else if filter.statuses.is_empty() || filter.statuses.contains(&ExecutionStatus::Completed) {
        let lists = list.clone().map_or_else(|| lists(connection), |list| Ok(vec![list]))?;
        let mut found = vec![];
        for list in lists {
            found.extend(find(BY_WORKFLOW, &[&list])?);
        }
        found
    } else {
        let mut found = vec![];
        for status in &filter.statuses {
            found.extend(find(BY_STATUS, &[&status.as_str()])?);
        }
        found
    };
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(page_of_ids(found, limit, EXECUTIONS))
}

/// The lists of all workflows: one look into the index for each.
fn lists(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE found (list) AS (
             SELECT min(list) FROM record WHERE list > ?1 AND list < ?2
             UNION ALL
             SELECT (SELECT min(list) FROM record WHERE list > found.list AND list < ?2) FROM found
             WHERE found.list IS NOT NULL
         )
         SELECT list FROM found WHERE list IS NOT NULL",
    )?;
    statement.query_map([FIRST_LIST, BEHIND_ALL_LISTS], |row| row.get(0))?.collect()
}

/// How many executions there are of each workflow and status.
pub(crate) fn counts(connection: &Connection) -> Result<Vec<ExecutionCount>, Failure> {
    let mut counts: BTreeMap<(String, ExecutionStatus), u64> = BTreeMap::new();
    let mut statement = connection.prepare_cached(
        "SELECT list, status, count(*) FROM record INDEXED BY execution_by_status
         WHERE kind = 1 AND status <> 'completed' GROUP BY status, list",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let status = ExecutionStatus::parse(&row.get::<_, String>(1)?)
            .ok_or_else(|| corrupt("the status of an execution isn't one".to_owned()))?;
        counts.insert((row.get(0)?, status), row.get::<_, i64>(2)?.cast_unsigned());
    }
    let mut statement = connection.prepare_cached("SELECT count(*) FROM record WHERE list = ?1")?;
    for list in lists(connection)? {
        let all: i64 = statement.query_row([&list], |row| row.get(0))?;
        let others =
            ExecutionStatus::ALL.into_iter().filter_map(|status| counts.get(&(list.clone(), status)));
        let completed = all.cast_unsigned().saturating_sub(others.sum());
        counts.insert((list, ExecutionStatus::Completed), completed);
    }
    let count = |((list, status), count): ((String, ExecutionStatus), u64)| {
        Ok(ExecutionCount { workflow: workflow_of(&list)?, status, count })
    };
    counts.into_iter().filter(|(_, count)| *count > 0).map(count).collect()
}

//! Checking a data file: whether the engine finds it whole, and whether each record can be read.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row};
use tickover_core::execution::journal::Segment;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::error::OpenError;
use crate::file::{read_existing, sizes};
use crate::record::{Kind, NewRecord, Read, stored};
use crate::{mark, schema};

/// Problems that are described; all are counted.
const DESCRIBED_MAX: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The version of the schema.
    pub schema: i64,
    pub file_bytes: u64,
    /// Of the log beside the file.
    pub log_bytes: u64,
    /// How many there are of each kind of record or part, by its name in the plural.
    pub counts: Vec<(&'static str, u64)>,
    /// The first problems, a sentence each. They name records, and quote nothing of their payloads.
    pub problems: Vec<String>,
    /// How many problems there are in all.
    pub problem_count: u64,
}

impl Findings {
    fn problem(&mut self, what: String) {
        self.problem_count += 1;
        if self.problems.len() < DESCRIBED_MAX {
            self.problems.push(what);
        }
    }
}

/// Checks a data file: the engine's own check, and whether the body of each record can be read and agrees with its
/// columns and with the table of labels. Reads the whole file and writes nothing.
///
/// A server may have the file open meanwhile. Its log grows until the check is done.
pub fn check(path: &Path) -> Result<Findings, OpenError> {
    read_existing(path, |connection, has_no_log| {
        inspect(connection, path, has_no_log).map_err(|error| OpenError::of_file(path, error))
    })
}

/// How the rows of an open store differ from their bodies: the first problems, a sentence each.
pub(crate) fn deviations(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut findings = Findings::default();
    records(connection, &mut findings)?;
    labels(connection, &mut findings)?;
    Ok(findings.problems)
}

/// One transaction: all of it sees the same state.
fn inspect(connection: &Connection, path: &Path, has_no_log: bool) -> Result<Findings, rusqlite::Error> {
    let transaction = connection.unchecked_transaction()?;
    let schema = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let (file_bytes, log_bytes) = sizes(path);
    let mut findings = Findings { schema, file_bytes, log_bytes, ..Findings::default() };
    if has_no_log && mark::is_set(&transaction)? {
        findings.problem(
            "the log (-wal) of a process that didn't stop in order is missing beside it: commits may be lost"
                .to_owned(),
        );
    }
    let (deviations, is_current) = schema::deviations(&transaction)?;
    // A whole file of an older version is brought up to date when a server starts with it.
    let parts: &[Part] = if is_current || !deviations.is_empty() {
        &[integrity, records, labels, payloads, segments, joins]
    } else {
        &[integrity]
    };
    for deviation in deviations {
        findings.problem(deviation);
    }
    for part in parts {
        match part(&transaction, &mut findings) {
            Err(error) if is_busy(&error) => return Err(error),
            // The rest of this part can't be read. The other parts may be.
            Err(error) => findings.problem(error.to_string()),
            Ok(()) => {}
        }
    }
    Ok(findings)
}

/// Checks one part of a file.
type Part = fn(&Connection, &mut Findings) -> Result<(), rusqlite::Error>;

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// A column's text, to name a record by. What isn't text in it is replaced: the check goes on.
fn text(row: &Row<'_>, column: usize) -> Result<String, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null => String::new(),
    })
}

fn integrity(connection: &Connection, findings: &mut Findings) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line = text(row, 0)?;
        if line != "ok" {
            findings.problem(line.replace('\n', " "));
        }
    }
    Ok(())
}

fn records(connection: &Connection, findings: &mut Findings) -> Result<(), rusqlite::Error> {
    let mut counts = Kind::ALL.map(|kind| (kind.plural(), 0));
    let mut statement = connection.prepare(
        "SELECT kind, id, body, incarnation, version, nonce, due_shard, due_at, due_kind, wakes, expires_at,
             list, list_at, queue, status, ready_at, is_open, error, row, lane, failed_at, failed_of, failed_step
         FROM record ORDER BY row",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (number, id): (i64, String) = (row.get(0)?, text(row, 1)?);
        let Some((kind, count)) =
            Kind::ALL.into_iter().zip(&mut counts).find(|(kind, _)| *kind as i64 == number)
        else {
            findings.problem(format!("record {id:?} is of kind {number}, which this build doesn't know"));
            continue;
        };
        count.1 += 1;
        match compare(kind, &id, row) {
            Ok(record) if matches!(kind, Kind::Task | Kind::Execution) => {
                labels_of(connection, kind, &id, &record, row.get(18)?, findings)?;
            }
            Ok(_) => {}
            Err(problem) => findings.problem(problem),
        }
    }
    findings.counts.extend(counts);
    Ok(())
}

/// What should be stored of a record, or what is wrong with it.
fn compare(kind: Kind, id: &str, row: &Row<'_>) -> Result<NewRecord, String> {
    let what = |problem: &str| Err(format!("{} {id:?}: {problem}", kind.name()));
    let (Ok(Ok(body)), Ok(stored)) = (row.get_ref(2).map(|body| body.as_str()), stored(row, 3)) else {
        return what("a column isn't of its type");
    };
    let read = Read { id, body, stored };
    let Ok((own_id, expected)) = expected(kind, &read) else {
        return what("its body isn't of a format that this build reads");
    };
    let stored = &read.stored;
    let list = expected.list.as_ref();
    // Due slots, wakes and expiries change without the body.
    let agreements = [
        ("id", own_id == id),
        ("incarnation", expected.stored.incarnation == stored.incarnation),
        ("version", expected.stored.version == stored.version),
        ("nonce", expected.stored.nonce == stored.nonce),
        ("list", row.get(11) == Ok(list.map(|(name, _)| name.clone()))),
        ("list_at", row.get(12) == Ok(list.map(|(_, at)| at.as_millis()))),
        ("queue", row.get(13) == Ok(expected.queue.clone())),
        ("status", row.get(14) == Ok(expected.status.map(str::to_owned))),
        ("ready_at", row.get(15) == Ok(expected.ready_at.map(Timestamp::as_millis))),
        ("is_open", row.get(16) == Ok(expected.is_open)),
        ("lane", row.get(19) == Ok(expected.lane.clone())),
        ("error", row.get(17) == Ok(expected.error.clone())),
        ("failed_at", row.get(20) == Ok(expected.failed_at.map(Timestamp::as_millis))),
        ("failed_of", row.get(21) == Ok(expected.failed_of.clone())),
        ("failed_step", row.get(22) == Ok(expected.failed_step.clone())),
    ];
    match agreements.into_iter().find(|(_, agrees)| !agrees) {
        Some((column, _)) => what(&format!("its column {column} and its body differ")),
        None => Ok(expected),
    }
}

/// Compares the labels of a task or an execution with those by which it is found.
fn labels_of(
    connection: &Connection,
    kind: Kind,
    id: &str,
    record: &NewRecord,
    number: i64,
    findings: &mut Findings,
) -> Result<(), rusqlite::Error> {
    // Without the payload that has them, nothing says what they should be.
    let expected = match record.labels.read(connection) {
        Ok(Some(labels)) => labels.into_owned(),
        Ok(None) => return Ok(()),
        Err(error) => {
            findings.problem(format!("{} {id:?}: its labels can't be read: {error}", kind.name()));
            return Ok(());
        }
    };
    let mut statement =
        connection.prepare_cached("SELECT name, value, at, id, kind FROM label WHERE row = ?1")?;
    let at = record.list.as_ref().map(|(_, at)| at.as_millis());
    let found = statement.query_map([number], |row| {
        let agrees =
            row.get(2) == Ok(at) && row.get_ref(3)?.as_str() == Ok(id) && row.get(4) == Ok(kind as i64);
        Ok((agrees, text(row, 0)?, text(row, 1)?))
    })?;
    let found: Vec<(bool, String, String)> = found.collect::<Result<_, _>>()?;
    let agrees = found.iter().all(|(agrees, ..)| *agrees)
        && found.into_iter().map(|(_, name, value)| (name, value)).collect::<BTreeMap<_, _>>() == expected;
    if !agrees {
        findings.problem(format!("{} {id:?}: its labels and those by which it is found differ", kind.name()));
    }
    Ok(())
}

/// Finds the labels of tasks and executions that aren't there.
fn labels(connection: &Connection, findings: &mut Findings) -> Result<(), rusqlite::Error> {
    let count: i64 = connection.query_row("SELECT count(*) FROM label", [], |row| row.get(0))?;
    findings.counts.push(("labels", count.cast_unsigned()));
    let mut statement = connection.prepare(
        "SELECT DISTINCT kind, id FROM label
         WHERE NOT EXISTS (SELECT 1 FROM record WHERE row = label.row AND kind = label.kind) ORDER BY kind, id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let of: i64 = row.get(0)?;
        let what = Kind::ALL.into_iter().find(|kind| *kind as i64 == of).map_or("record", Kind::name);
        let id = text(row, 1)?;
        findings.problem(format!("{what} {id:?}: it has labels, and isn't there"));
    }
    Ok(())
}

/// The id in a record's body, and the columns that belong to that body.
fn expected(kind: Kind, read: &Read<'_>) -> Result<(String, NewRecord), StoreError> {
    if let Some(record) = read.record(kind)? {
        return Ok((record.id().to_string(), NewRecord::of(&record)?));
    }
    let waiter = read.waiter()?;
    let gate = read.id.split_once('#').map_or(read.id, |(gate, _)| gate);
    let expires_at = read.stored.expires_at.unwrap_or(Timestamp::EPOCH);
    Ok((format!("{gate}#{}", waiter.sort_key()), NewRecord::waiter(&waiter, expires_at)?))
}

fn payloads(connection: &Connection, findings: &mut Findings) -> Result<(), rusqlite::Error> {
    let (mut statement, mut count) = (connection.prepare("SELECT hex(id), body FROM blob ORDER BY row")?, 0);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        count += 1;
        if row.get_ref(1)?.as_str().ok().and_then(Json::parse).is_none() {
            findings.problem(format!("payload {}: it isn't JSON", text(row, 0)?));
        }
    }
    findings.counts.push(("payloads", count));
    Ok(())
}

fn segments(connection: &Connection, findings: &mut Findings) -> Result<(), rusqlite::Error> {
    let (mut statement, mut count) =
        (connection.prepare("SELECT execution, run, number, body FROM segment ORDER BY row")?, 0);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        count += 1;
        let segment: Option<Segment> =
            row.get_ref(3)?.as_str().ok().and_then(|body| serde_json::from_str(body).ok());
        if segment.is_none() {
            let (execution, run, number) = (text(row, 0)?, text(row, 1)?, text(row, 2)?);
            findings.problem(format!(
                "execution {execution:?}: segment {number} of run {run} isn't of a format that this build reads"
            ));
        }
    }
    findings.counts.push(("segments of journals", count));
    Ok(())
}

fn joins(connection: &Connection, findings: &mut Findings) -> Result<(), rusqlite::Error> {
    let count: i64 = connection.query_row("SELECT count(*) FROM join_item", [], |row| row.get(0))?;
    findings.counts.push(("joins", count.cast_unsigned()));
    Ok(())
}

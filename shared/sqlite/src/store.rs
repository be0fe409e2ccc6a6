//! The store: opening it, and the calls of the port.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::Connection;
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{
    BlobId, ExecutionId, GateId, Incarnation, QueueName, RecordId, TaskId, WorkflowName,
};
use tickover_core::lane::Lane;
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::memory::{Backlog, Choice, Ready};
use tickover_service::ports::{
    Collection, Consistency, DueEntry, DueRange, ExecutionCount, ExecutionFilter, ExecutionIndex, Failed,
    History, Listing, Page, Sample, Store, StoreError, StoreTraits, TaskCount, TaskFilter, TaskIndex,
};

use crate::commit::Commit;
use crate::error::{Failure, OpenError, engine};
use crate::file::{Watched, absolute, acquire, log_of};
use crate::history::Addition;
use crate::part::{self, Mark, NewItem};
use crate::record::Kind;
use crate::writer::{Job, Shared, Writer, lock};
use crate::{backlog, check, expiry, find, history, mark, read, schema};

/// Connections that are kept for readers. More are opened while more read at once, and closed after that.
const READERS_KEPT: usize = 8;

/// A store in a file, or in memory.
pub struct SqliteStore {
    // Closed in this order: the log is moved into the file by the last connection, which is the writer's.
    readers: Readers,
    writer: Writer,
    /// Held while the file is open; the system lets go of it however the process ends.
    _lock: Option<File>,
}

/// The connections that read.
enum Readers {
    /// Of a file: as many as read at once.
    Pool { path: PathBuf, idle: Mutex<Vec<Connection>> },
    /// In memory: the one there is.
    Shared(Shared),
}

impl SqliteStore {
    /// Opens the database in `path`, and makes it if there is none. Blocks while it does so.
    ///
    /// One process has a file open at a time, whatever name it is opened under.
    pub fn file(path: &Path) -> Result<Self, OpenError> {
        let path = absolute(path)?;
        let fail = |source| OpenError::File { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(fail)?;
        }
        let lock = acquire(&path, true)?;
        let has_no_log = !log_of(&path).exists();
        let connection = schema::open_writer(Some(&path))?;
        begin(&connection, has_no_log).map_err(|error| OpenError::of_file(&path, error))?;
        let watched = Watched::new(&path).map_err(fail)?;
        let writer = Writer::thread(connection, path.clone(), watched).map_err(fail)?;
        let readers = Readers::Pool { path, idle: Mutex::default() };
        Ok(Self { readers, writer, _lock: Some(lock) })
    }

    /// An empty database in memory, which is forgotten when it is dropped.
    pub fn memory() -> Result<Self, OpenError> {
        let connection = Arc::new(Mutex::new(schema::open_writer(None)?));
        Ok(Self {
            readers: Readers::Shared(Arc::clone(&connection)),
            writer: Writer::inline(connection),
            _lock: None,
        })
    }

    /// Deletes what has expired by that instant, a batch after the other: how many rows. Other writes go on in between.
    pub async fn delete_expired(&self, now: Timestamp) -> Result<usize, StoreError> {
        let mut deleted = 0;
        loop {
            let batch = self.writer.run(Job::DeleteExpired(now)).await?;
            deleted += batch;
            if batch < expiry::BATCH {
                return Ok(deleted);
            }
        }
    }

    /// How the columns and labels of the records differ from their bodies, as [`check`](crate::check) would say. It reads all of
    /// them: tests ask for that after their writes.
    pub fn deviations(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| Ok(check::deviations(connection)?))
    }

    /// Records what is measured by asking: how many commits wait, and the sizes of the file and its log.
    pub fn measure(&self) {
        self.writer.measure();
    }

    /// Reads on a connection of its own, and sees one state: what is committed meanwhile isn't in it.
    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, StoreError> {
        match &self.readers {
            Readers::Shared(connection) => Ok(read(&lock(connection))?),
            Readers::Pool { path, idle } => {
                self.writer.check_files()?;
                let idle = || idle.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = idle().pop();
                let connection = match kept {
                    Some(connection) => connection,
                    None => schema::open_reader(path).map_err(|error| engine(&error))?,
                };
                let answer = in_transaction(&connection, read);
                let mut idle = idle();
                if idle.len() < READERS_KEPT {
                    idle.push(connection);
                }
                Ok(answer?)
            }
        }
    }
}

/// Reads in a transaction. It begins with the first statement, and is over at the end.
fn in_transaction<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let transaction = connection.unchecked_transaction()?;
    read(&transaction)
}

/// Marks the file as open, and says so if it was left open by a process whose log is missing.
fn begin(connection: &Connection, has_no_log: bool) -> Result<(), rusqlite::Error> {
    if !mark::is_set(connection)? {
        return mark::set(connection);
    }
    if has_no_log {
        tracing::warn!(
            "the log (-wal) of the last process is missing beside the data file: commits that it had acknowledged may be \
             lost. Both files belong together: if you have a copy of both, stop, and restore it"
        );
    }
    Ok(())
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl Backlog for SqliteStore {
    fn hints(
        &self,
        queue: &QueueName,
        lane: Lane,
        choose: &mut dyn FnMut(Ready) -> Choice,
    ) -> Result<Vec<String>, StoreError> {
        self.read(|connection| backlog::hints(connection, queue, lane, choose))
    }

    fn lanes(&self, queue: &QueueName, after: Option<Lane>, max: usize) -> Result<Vec<Lane>, StoreError> {
        self.read(|connection| backlog::lanes(connection, queue, after, max))
    }

    fn queues(&self) -> Result<Vec<QueueName>, StoreError> {
        self.read(backlog::queues)
    }

    fn latest(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(backlog::latest)
    }

    fn count(&self, queue: &QueueName, now: Timestamp) -> Result<u64, StoreError> {
        self.read(|connection| backlog::count(connection, queue, now))
    }
}

impl TaskIndex for SqliteStore {
    fn find(
        &self,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.read(|connection| find::tasks(connection, filter, limit, cursor))
    }

    fn failed(&self, each: &mut dyn FnMut(Failed<'_>)) -> Result<(), StoreError> {
        self.read(|connection| find::failed(connection, Kind::Task, each))
    }

    fn oldest(&self, queue: &QueueName, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection| find::oldest(connection, queue, now))
    }

    fn running(&self) -> Result<Vec<(QueueName, u64)>, StoreError> {
        self.read(find::running)
    }

    fn counts(&self, late_from: Timestamp) -> Result<Vec<TaskCount>, StoreError> {
        self.read(|connection| find::counts(connection, late_from))
    }
}

impl ExecutionIndex for SqliteStore {
    fn find(
        &self,
        filter: &ExecutionFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.read(|connection| find::executions::matching(connection, filter, limit, cursor))
    }

    fn failed(&self, each: &mut dyn FnMut(Failed<'_>)) -> Result<(), StoreError> {
        self.read(|connection| find::failed(connection, Kind::Execution, each))
    }

    fn counts(&self) -> Result<Vec<ExecutionCount>, StoreError> {
        self.read(find::executions::counts)
    }
}

#[async_trait]
impl History for SqliteStore {
    async fn add(&self, samples: &[Sample], keep_from: Timestamp) -> Result<(), StoreError> {
        let addition = Addition { samples: samples.to_vec(), keep_from };
        self.writer.run(Job::History(addition)).await.map(|_| ())
    }

    fn since(&self, from: Timestamp, queue: Option<&QueueName>) -> Result<Vec<Sample>, StoreError> {
        self.read(|connection| history::since(connection, from, queue))
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn record(&self, id: &RecordId, _: Consistency) -> Result<Option<Record>, StoreError> {
        self.read(|connection| read::record(connection, Kind::of(id), &id.to_string()))
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        self.read(|connection| read::records(connection, ids))
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.read(|connection| read::collection(connection, of, limit, cursor))
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.writer.run(Job::Commit(Commit::new(writes)?)).await.map(|_| ())
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.writer.run(Job::Part(NewItem::blob(at, body))).await.map(|_| ())
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.read(|connection| part::blob(connection, id))
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.read(|connection| read::due_entries(connection, range, limit, cursor))
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.read(|connection| read::tasks(connection, listing, limit, cursor))
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.read(|connection| read::executions(connection, workflow, limit, cursor))
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let part = NewItem::segment(id, key, segment, expires_at)?;
        self.writer.run(Job::Part(part)).await.map(|_| ())
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        self.read(|connection| part::segments(connection, id, incarnation, run, after))
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        let marked = self.writer.run(Job::Mark(Mark { parent: parent.clone(), slot, expires_at })).await?;
        Ok(u16::try_from(marked).unwrap_or(u16::MAX))
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.read(|connection| read::waiters(connection, gate, after, limit))
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        if part > 0 {
            return Ok(None);
        }
        self.read(|connection| read::next_line(connection, after))
    }

    fn traits(&self) -> StoreTraits<'_> {
        let trouble = self.writer.trouble();
        StoreTraits { tasks: Some(self), executions: Some(self), lists: None, history: Some(self), trouble }
    }
}

#[cfg(test)]
mod tests {
    use tickover_core::task::Status;

    use super::*;

    /// A list by two statuses has a statement for each of them.
    #[test]
    fn what_changes_between_the_statements_of_a_read_is_seen_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.db");
        let store = SqliteStore::file(&path).unwrap();
        let other = Connection::open(&path).unwrap();
        other
            .execute(
                "INSERT INTO record (kind, id, incarnation, version, nonce, wakes, queue, status, list, list_at,
                     has_hint, is_open, body)
                 VALUES (0, 't', 1, 1, 0, 0, 'work', 'pending', 'pending', 1, 0, 0, '{}')",
                [],
            )
            .unwrap();
        let count = |connection: &Connection, status| {
            let filter = TaskFilter { statuses: vec![status], ..TaskFilter::default() };
            Ok::<_, Failure>(find::tasks(connection, &filter, 9, None)?.items.len())
        };
        let found = store.read(|connection| {
            let pending = count(connection, Status::Pending)?;
            other.execute("UPDATE record SET status = 'running', list = 'running'", [])?;
            Ok((pending, count(connection, Status::Running)?))
        });
        assert_eq!(found.unwrap(), (1, 0));
        let found = store.read(|connection| {
            Ok((count(connection, Status::Pending)?, count(connection, Status::Running)?))
        });
        assert_eq!(found.unwrap(), (0, 1));
    }
}

//! The thread that writes: group commit.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tickover_core::time::Timestamp;
use tickover_service::metric;
use tickover_service::ports::StoreError;
use tokio::sync::oneshot;

use crate::checkpoint::Checkpoints;
use crate::commit::Commit;
use crate::error::{Failure, refusal};
use crate::expiry;
use crate::file::{Watched, sizes};
use crate::history::Addition;
use crate::part::{self, Mark, NewItem};
use crate::trouble::{QUIET, Trouble};

/// Jobs of one transaction at most: it bounds how long the first of them waits for the others.
const GROUP_MAX: usize = 256;

/// What the writer is asked for.
#[derive(Debug)]
pub(crate) enum Job {
    Commit(Commit),
    Part(NewItem),
    Mark(Mark),
    /// Adds samples to the history.
    History(Addition),
    /// Deletes a batch of what has expired by that instant.
    DeleteExpired(Timestamp),
    /// Writes something that has expired already, to see whether the disk takes it.
    Probe,
}

impl Job {
    /// A number that says how many of something there are, where the job counts; else 0.
    fn run(&self, connection: &Connection) -> Result<usize, Failure> {
        match self {
            Self::Commit(commit) => commit.run(connection).map(|()| 0),
            Self::Part(part) => part.run(connection).map(|()| 0),
            Self::Mark(mark) => mark.run(connection).map(usize::from),
            Self::History(addition) => addition.run(connection).map(|()| 0),
            Self::DeleteExpired(now) => expiry::delete_batch(connection, *now),
            Self::Probe => Ok(part::probe(connection)?),
        }
    }
}

/// A job, and whom its answer goes to.
struct Request {
    job: Job,
    answer: oneshot::Sender<Result<usize, StoreError>>,
}

/// The connection of a database in memory, which no other connection can open: readers and writers share it.
pub(crate) type Shared = Arc<Mutex<Connection>>;

/// Takes jobs.
pub(crate) struct Writer {
    mode: Mode,
    engine: Arc<Engine>,
}

/// Where jobs are done.
enum Mode {
    /// In a thread of its own, because each transaction waits for the disk.
    Thread(Thread),
    /// In the callers' threads: in memory there is nothing to wait for.
    Inline,
}

/// What jobs are done with.
struct Engine {
    connection: Shared,
    /// The data file. In memory there is none, and nothing to measure or to lose.
    file: Option<DataFile>,
    trouble: Trouble,
    /// Jobs that no group has yet.
    waiting: AtomicUsize,
}

/// What is known of a data file.
struct DataFile {
    path: PathBuf,
    watched: Watched,
}

struct Thread {
    /// Absent only while it is dropped.
    requests: Option<Sender<Request>>,
    handle: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread that owns this connection to the file in `path`.
    pub(crate) fn thread(
        connection: Connection,
        path: PathBuf,
        watched: Watched,
    ) -> Result<Self, std::io::Error> {
        let file = DataFile { path: path.clone(), watched };
        let engine = Engine::new(Arc::new(Mutex::new(connection)), Some(file));
        let (requests, received) = channel();
        let for_thread = Arc::clone(&engine);
        let handle = std::thread::Builder::new()
            .name("tickover-sqlite".to_owned())
            .spawn(move || for_thread.serve(&path, &received))?;
        Ok(Self { mode: Mode::Thread(Thread { requests: Some(requests), handle: Some(handle) }), engine })
    }

    pub(crate) fn inline(connection: Shared) -> Self {
        Self { mode: Mode::Inline, engine: Engine::new(connection, None) }
    }

    /// Has a job done. When this returns, its effect is on the disk.
    pub(crate) async fn run(&self, job: Job) -> Result<usize, StoreError> {
        let (answer, answered) = oneshot::channel();
        match &self.mode {
            Mode::Inline => self.engine.perform(vec![Request { job, answer }]),
            Mode::Thread(thread) => {
                self.engine.waiting.fetch_add(1, Ordering::Relaxed);
                let request = Request { job, answer };
                let is_sent = thread.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok());
                if !is_sent {
                    return Err(self.gone());
                }
            }
        }
        answered.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Why jobs are refused now, if they are.
    pub(crate) fn trouble(&self) -> Option<&'static str> {
        self.engine.lost().or_else(|| self.engine.trouble.now())
    }

    /// Refuses calls while the files aren't in their folder: what is in their place is another file.
    pub(crate) fn check_files(&self) -> Result<(), StoreError> {
        self.engine.lost().map_or(Ok(()), |what| Err(lost(what)))
    }

    /// Records how many jobs wait, and the sizes of the file and its log.
    pub(crate) fn measure(&self) {
        if let Some(DataFile { path, .. }) = &self.engine.file {
            let (file, log) = sizes(path);
            metric::data_file(self.engine.waiting.load(Ordering::Relaxed), file, log);
        }
    }

    fn gone(&self) -> StoreError {
        self.engine.trouble.ended();
        StoreError::Unavailable { reason: "the thread that writes has ended".to_owned(), is_logged: true }
    }
}

impl Drop for Thread {
    /// Waits until what was asked for is done, so that the file can be closed.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(handle) = self.handle.take() {
            // It panicked: whoever waited for an answer has been refused.
            let _ended = handle.join();
        }
    }
}

pub(crate) fn lock(connection: &Shared) -> MutexGuard<'_, Connection> {
    // A transaction that a panic interrupted is rolled back when it is dropped.
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    fn new(connection: Shared, file: Option<DataFile>) -> Arc<Self> {
        Arc::new(Self { connection, file, trouble: Trouble::default(), waiting: AtomicUsize::new(0) })
    }

    fn serve(&self, path: &Path, requests: &Receiver<Request>) {
        let started = Checkpoints::start(path, &lock(&self.connection));
        let mut checkpoints = match started {
            Ok(checkpoints) => checkpoints,
            Err(error) => return tracing::error!(%error, "no thread for checkpoints"),
        };
        while let Some(group) = self.next(requests) {
            self.perform(group);
            if self.lost().is_some() {
                continue;
            }
            if let Err(error) = checkpoints.after_commit(&lock(&self.connection)) {
                tracing::debug!(%error, "the log was not checkpointed");
            }
        }
        if self.lost().is_none()
            && let Err(error) = crate::mark::clear(&lock(&self.connection))
        {
            tracing::debug!(%error, "the file stays marked as open; its log stays beside it");
        }
    }

    /// What has happened to the files, if they aren't in their folder any more.
    fn lost(&self) -> Option<&'static str> {
        self.file.as_ref().and_then(|file| file.watched.lost())
    }

    /// Refuses a group of jobs because the files aren't there.
    fn refuse_lost(&self, group: Vec<Request>, what: &'static str) {
        self.trouble.lost(what);
        for request in group {
            reply(request, Err(lost(what)));
        }
    }

    /// The next group of jobs; `None` at the end.
    ///
    /// While the disk refuses commits and nobody asks for one, the writer tries by itself: the trouble must end also
    /// where nobody writes.
    fn next(&self, requests: &Receiver<Request>) -> Option<Vec<Request>> {
        let first = if self.trouble.now().is_some() {
            match requests.recv_timeout(QUIET) {
                Ok(request) => request,
                Err(RecvTimeoutError::Timeout) => return Some(vec![probe()]),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        } else {
            requests.recv().ok()?
        };
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            match requests.try_recv() {
                Ok(request) => group.push(request),
                Err(_) => break,
            }
        }
        self.waiting.fetch_sub(group.len(), Ordering::Relaxed);
        Some(group)
    }

    /// Does a group of jobs in one transaction, and answers them.
    ///
    /// Where the engine fails, each job is tried in a transaction of its own: one that can't be done fails alone.
    fn perform(&self, group: Vec<Request>) {
        if let Some(what) = self.lost() {
            return self.refuse_lost(group, what);
        }
        let done = transaction(&mut lock(&self.connection), &group);
        match done {
            Ok(Done { answers, written_in }) => {
                // What was written to files that are gone isn't acknowledged.
                if let Some(what) = self.lost() {
                    return self.refuse_lost(group, what);
                }
                if let Some(took) = written_in {
                    self.trouble.written();
                    if self.file.is_some() {
                        metric::synced(group.len(), took);
                    }
                }
                for (request, answer) in group.into_iter().zip(answers) {
                    reply(request, answer);
                }
            }
            Err(error) if group.len() == 1 => {
                self.trouble.refused(&error);
                for request in group {
                    reply(request, Err(refusal(&error)));
                }
            }
            Err(_) => {
                for request in group {
                    self.perform(vec![request]);
                }
            }
        }
    }
}

/// The refusal of a call while the files aren't in their folder. The log has the cause, once.
fn lost(what: &str) -> StoreError {
    StoreError::Unavailable { reason: what.to_owned(), is_logged: true }
}

/// A job that nobody waits for.
fn probe() -> Request {
    Request { job: Job::Probe, answer: oneshot::channel().0 }
}

/// A transaction that was committed.
struct Done {
    answers: Vec<Result<usize, StoreError>>,
    /// How long the disk took. Absent if nothing has changed: then the disk isn't touched.
    written_in: Option<Duration>,
}

fn transaction(connection: &mut Connection, group: &[Request]) -> Result<Done, rusqlite::Error> {
    let changes = connection.total_changes();
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut answers = Vec::with_capacity(group.len());
    for request in group {
        match request.job.run(&transaction) {
            Ok(count) => answers.push(Ok(count)),
            Err(Failure::Refused(refusal)) => answers.push(Err(refusal)),
            // Dropped, the transaction is rolled back.
            Err(Failure::Engine(error)) => return Err(error),
        }
    }
    let began = Instant::now();
    transaction.commit()?;
    let has_written = connection.total_changes() > changes;
    Ok(Done { answers, written_in: has_written.then(|| began.elapsed()) })
}

fn reply(request: Request, answer: Result<usize, StoreError>) {
    // A caller that has gone away doesn't need it.
    let _unread = request.answer.send(answer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn perform(engine: &Engine, jobs: Vec<Job>) -> Vec<Result<usize, StoreError>> {
        let (group, answers): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .map(|job| {
                let (answer, answered) = oneshot::channel();
                (Request { job, answer }, answered)
            })
            .unzip();
        engine.perform(group);
        answers.into_iter().map(|answered| answered.blocking_recv().unwrap()).collect()
    }

    #[test]
    fn a_commit_that_does_not_fit_is_refused_alone_and_the_disk_is_named_as_full() {
        let connection = schema::open_writer(None).unwrap();
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        connection.pragma_update(None, "max_page_count", pages + 2).unwrap();
        let engine = Engine::new(Arc::new(Mutex::new(connection)), None);
        let expired = || Job::DeleteExpired(Timestamp::EPOCH);
        let answers = perform(&engine, vec![expired(), Job::Probe, expired()]);
        let refused = |answer: &Result<usize, StoreError>| answer.as_ref().is_err_and(StoreError::is_logged);
        assert_eq!(answers.iter().map(refused).collect::<Vec<_>>(), [false, true, false], "{answers:?}");
        assert_eq!(engine.trouble.now(), Some("the disk is full"));
        // It has written nothing, so it says nothing about the disk.
        assert!(perform(&engine, vec![expired()])[0].is_ok());
        assert_eq!(engine.trouble.now(), Some("the disk is full"));
    }
}

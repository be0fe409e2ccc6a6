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
use crate::file::sizes;
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
            Self::DeleteExpired(now) => expiry::delete_batch(connection, *now),
            Self::Probe => Ok(part::probe(connection)?),
        }
    }
}

/// A job, and whom its answer goes to.
struct Order {
    job: Job,
    answer: oneshot::Sender<Result<usize, StoreError>>,
}

/// The connection of a database in memory, which no other connection can open: readers and writers share it.
pub(crate) type Shared = Arc<Mutex<Connection>>;

/// Takes jobs.
pub(crate) struct Writer {
    place: Place,
    desk: Arc<Desk>,
}

/// Where jobs are done.
enum Place {
    /// In a thread of its own, because each transaction waits for the disk.
    Thread(Thread),
    /// In the callers' threads: in memory there is nothing to wait for.
    Inline,
}

/// What jobs are done with.
struct Desk {
    connection: Shared,
    /// The data file. In memory there is none, and nothing to measure.
    path: Option<PathBuf>,
    trouble: Trouble,
    /// Jobs that no group has yet.
    waiting: AtomicUsize,
}

struct Thread {
    /// Absent only while it is dropped.
    orders: Option<Sender<Order>>,
    handle: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread that owns this connection to the file in `path`.
    pub(crate) fn thread(connection: Connection, path: PathBuf) -> Result<Self, std::io::Error> {
        let desk = Desk::new(Arc::new(Mutex::new(connection)), Some(path.clone()));
        let (orders, received) = channel();
        let of_thread = Arc::clone(&desk);
        let handle = std::thread::Builder::new()
            .name("tickover-sqlite".to_owned())
            .spawn(move || of_thread.serve(&path, &received))?;
        Ok(Self { place: Place::Thread(Thread { orders: Some(orders), handle: Some(handle) }), desk })
    }

    pub(crate) fn inline(connection: Shared) -> Self {
        Self { place: Place::Inline, desk: Desk::new(connection, None) }
    }

    /// Has a job done. When this returns, its effect is on the disk.
    pub(crate) async fn run(&self, job: Job) -> Result<usize, StoreError> {
        let (answer, answered) = oneshot::channel();
        match &self.place {
            Place::Inline => self.desk.perform(vec![Order { job, answer }]),
            Place::Thread(thread) => {
                self.desk.waiting.fetch_add(1, Ordering::Relaxed);
                let sent = thread.orders.as_ref().map(|orders| orders.send(Order { job, answer }));
                if !matches!(sent, Some(Ok(()))) {
                    return Err(self.gone());
                }
            }
        }
        answered.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Why jobs are refused now, if they are.
    pub(crate) fn trouble(&self) -> Option<&'static str> {
        self.desk.trouble.now()
    }

    /// Records how many jobs wait, and the sizes of the file and its log.
    pub(crate) fn measure(&self) {
        if let Some(path) = &self.desk.path {
            let (file, log) = sizes(path);
            metric::data_file(self.desk.waiting.load(Ordering::Relaxed), file, log);
        }
    }

    fn gone(&self) -> StoreError {
        self.desk.trouble.ended();
        StoreError::Unavailable { reason: "the thread that writes has ended".to_owned(), is_logged: true }
    }
}

impl Drop for Thread {
    /// Waits until what was asked for is done, so that the file can be closed.
    fn drop(&mut self) {
        self.orders = None;
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

impl Desk {
    fn new(connection: Shared, path: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self { connection, path, trouble: Trouble::default(), waiting: AtomicUsize::new(0) })
    }

    fn serve(&self, path: &Path, orders: &Receiver<Order>) {
        let started = Checkpoints::start(path, &lock(&self.connection));
        let mut checkpoints = match started {
            Ok(checkpoints) => checkpoints,
            Err(error) => return tracing::error!(%error, "no thread for checkpoints"),
        };
        while let Some(group) = self.next(orders) {
            self.perform(group);
            if let Err(error) = checkpoints.after_commit(&lock(&self.connection)) {
                tracing::debug!(%error, "the log was not checkpointed");
            }
        }
    }

    /// The next group of jobs; `None` at the end.
    ///
    /// While the disk refuses commits and nobody asks for one, the writer tries by itself: the trouble must end also
    /// where nobody writes.
    fn next(&self, orders: &Receiver<Order>) -> Option<Vec<Order>> {
        let first = if self.trouble.now().is_some() {
            match orders.recv_timeout(QUIET) {
                Ok(order) => order,
                Err(RecvTimeoutError::Timeout) => return Some(vec![probe()]),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        } else {
            orders.recv().ok()?
        };
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            match orders.try_recv() {
                Ok(order) => group.push(order),
                Err(_) => break,
            }
        }
        self.waiting.fetch_sub(group.len(), Ordering::Relaxed);
        Some(group)
    }

    /// Does a group of jobs in one transaction, and answers them.
    ///
    /// Where the engine fails, each job is tried in a transaction of its own: one that can't be done fails alone.
    fn perform(&self, group: Vec<Order>) {
        let done = transaction(&mut lock(&self.connection), &group);
        match done {
            Ok(Done { answers, written_in }) => {
                if let Some(took) = written_in {
                    self.trouble.written();
                    if self.path.is_some() {
                        metric::synced(group.len(), took);
                    }
                }
                for (order, answer) in group.into_iter().zip(answers) {
                    reply(order, answer);
                }
            }
            Err(error) if group.len() == 1 => {
                self.trouble.refused(&error);
                for order in group {
                    reply(order, Err(refusal(&error)));
                }
            }
            Err(_) => {
                for order in group {
                    self.perform(vec![order]);
                }
            }
        }
    }
}

/// A job that nobody waits for.
fn probe() -> Order {
    Order { job: Job::Probe, answer: oneshot::channel().0 }
}

/// A transaction that was committed.
struct Done {
    answers: Vec<Result<usize, StoreError>>,
    /// How long the disk took. Absent if nothing has changed: then the disk isn't touched.
    written_in: Option<Duration>,
}

fn transaction(connection: &mut Connection, group: &[Order]) -> Result<Done, rusqlite::Error> {
    let changes = connection.total_changes();
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut answers = Vec::with_capacity(group.len());
    for order in group {
        match order.job.run(&transaction) {
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

fn reply(order: Order, answer: Result<usize, StoreError>) {
    // A caller that has gone away doesn't need it.
    let _unread = order.answer.send(answer);
}

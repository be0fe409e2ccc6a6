//! The thread that writes: group commit.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;
use tokio::sync::oneshot;

use crate::checkpoint::Checkpoints;
use crate::commit::Commit;
use crate::error::{Failure, engine};
use crate::expiry;
use crate::part::{Mark, NewItem};

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
}

impl Job {
    /// A number that says how many of something there are, where the job counts; else 0.
    fn run(&self, connection: &Connection) -> Result<usize, Failure> {
        match self {
            Self::Commit(commit) => commit.run(connection).map(|()| 0),
            Self::Part(part) => part.run(connection).map(|()| 0),
            Self::Mark(mark) => mark.run(connection).map(usize::from),
            Self::DeleteExpired(now) => expiry::delete_batch(connection, *now),
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
pub(crate) enum Writer {
    /// A thread of its own, because each transaction waits for the disk.
    Thread(Thread),
    /// The callers' threads: in memory there is nothing to wait for.
    Inline(Shared),
}

pub(crate) struct Thread {
    /// Absent only while it is dropped.
    orders: Option<Sender<Order>>,
    handle: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread that owns this connection to the file in `path`.
    pub(crate) fn thread(connection: Connection, path: PathBuf) -> Result<Self, std::io::Error> {
        let (orders, received) = channel();
        let handle = std::thread::Builder::new()
            .name("tickover-sqlite".to_owned())
            .spawn(move || serve(connection, path, &received))?;
        Ok(Self::Thread(Thread { orders: Some(orders), handle: Some(handle) }))
    }

    /// Has a job done. When this returns, its effect is on the disk.
    pub(crate) async fn run(&self, job: Job) -> Result<usize, StoreError> {
        let (answer, answered) = oneshot::channel();
        match self {
            Self::Inline(connection) => perform(&mut lock(connection), vec![Order { job, answer }]),
            Self::Thread(thread) => {
                let sent = thread.orders.as_ref().map(|orders| orders.send(Order { job, answer }));
                if !matches!(sent, Some(Ok(()))) {
                    return Err(gone());
                }
            }
        }
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Thread {
    /// Waits until what was asked for is done and the file is closed, so that it can be opened again.
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

fn gone() -> StoreError {
    StoreError::Unavailable { reason: "the thread that writes has ended".to_owned() }
}

fn serve(mut connection: Connection, path: PathBuf, orders: &Receiver<Order>) {
    let mut checkpoints = match Checkpoints::start(path, &connection) {
        Ok(checkpoints) => checkpoints,
        Err(error) => return tracing::error!(%error, "no thread for checkpoints"),
    };
    while let Ok(first) = orders.recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            match orders.try_recv() {
                Ok(order) => group.push(order),
                Err(_) => break,
            }
        }
        perform(&mut connection, group);
        if let Err(error) = checkpoints.after_commit(&connection) {
            tracing::warn!(%error, "the log was not checkpointed");
        }
    }
}

/// Does a group of jobs in one transaction, and answers them.
///
/// Where the engine fails, each job is tried in a transaction of its own: one that can't be done fails alone.
fn perform(connection: &mut Connection, group: Vec<Order>) {
    match transaction(connection, &group) {
        Ok(answers) => {
            for (order, answer) in group.into_iter().zip(answers) {
                reply(order, answer);
            }
        }
        Err(error) if group.len() == 1 => {
            for order in group {
                reply(order, Err(engine(&error)));
            }
        }
        Err(_) => {
            for order in group {
                perform(connection, vec![order]);
            }
        }
    }
}

fn transaction(
    connection: &mut Connection,
    group: &[Order],
) -> Result<Vec<Result<usize, StoreError>>, rusqlite::Error> {
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
    transaction.commit()?;
    Ok(answers)
}

fn reply(order: Order, answer: Result<usize, StoreError>) {
    // A caller that has gone away doesn't need it.
    let _unread = order.answer.send(answer);
}

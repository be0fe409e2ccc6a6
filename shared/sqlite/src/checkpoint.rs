//! Moving pages from the log into the database file, beside the writer.
//!
//! A checkpoint of a large log takes as long as hundreds of commits, most of it waiting for the disk. So a thread of its
//! own does it, on a connection of its own. Meanwhile the writer appends to the log. When the thread is done, the writer
//! itself checkpoints what was appended, which is little, and the log begins again at its start. Without that second
//! part, a busy writer would let the log grow for ever.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::schema;

/// Pages of the log from which on it is checkpointed: 16 MiB.
const PAGES: i32 = 4_000;

thread_local! {
    /// Pages in the log after this thread's last commit.
    static LOG_PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The writer's part of checkpoints.
pub(crate) struct Checkpoints {
    /// Asks the thread for a checkpoint; absent only while this is dropped.
    ask: Option<SyncSender<()>>,
    done: Receiver<()>,
    is_under_way: bool,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Starts the thread. To be called on the thread that commits on `writer`.
    pub(crate) fn start(path: &Path, writer: &Connection) -> std::io::Result<Self> {
        writer.wal_hook(Some(note_pages));
        let (ask, asked) = sync_channel(1);
        let (finish, done) = sync_channel(1);
        let path = path.to_owned();
        let run = move || {
            for () in &asked {
                match schema::open_reader(&path).and_then(|connection| checkpoint(&connection)) {
                    Ok(()) => {}
                    // The log stays as it is, and the next commit asks again.
                    Err(error) => tracing::debug!(%error, "the log was not checkpointed"),
                }
                if finish.send(()).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("tickover-log".to_owned()).spawn(run)?;
        Ok(Self { ask: Some(ask), done, is_under_way: false, thread: Some(thread) })
    }

    /// To be called after each commit of the writer.
    pub(crate) fn after_commit(&mut self, writer: &Connection) -> Result<(), rusqlite::Error> {
        if self.is_under_way {
            match self.done.try_recv() {
                Ok(()) => {
                    self.is_under_way = false;
                    checkpoint(writer)?;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
            }
        } else if LOG_PAGES.get() >= PAGES {
            self.is_under_way = self.ask.as_ref().is_some_and(|ask| ask.try_send(()).is_ok());
        }
        Ok(())
    }
}

impl Drop for Checkpoints {
    /// The thread's connection must be closed before the writer's, whose end deletes the log.
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "SQLite's signature")]
fn note_pages(_: &Wal, pages: i32) -> rusqlite::Result<()> {
    LOG_PAGES.set(pages);
    Ok(())
}

/// Moves what it can without waiting for anybody.
fn checkpoint(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

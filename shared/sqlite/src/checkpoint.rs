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
            if self.done.try_recv() == Err(TryRecvError::Empty) {
                return Ok(());
            }
            // It is done; or the thread has ended, and the writer does all of it from now on.
            self.is_under_way = false;
            return checkpoint(writer);
        }
        if LOG_PAGES.get() >= PAGES {
            self.is_under_way = true;
            // Without the thread, the next call finds the channel closed.
            let _asked = self.ask.as_ref().map(|ask| ask.try_send(()));
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

#[cfg(test)]
mod tests {
    use tickover_core::id::BlobId;
    use tickover_core::payload::{BlobRef, Json};
    use tickover_core::time::Timestamp;
    use tickover_service::ports::Store as _;

    use crate::SqliteStore;

    const PAGE_BYTES: u64 = 4_096;

    /// What is written is a multiple of what the log may have.
    #[tokio::test]
    async fn a_log_under_a_steady_load_begins_again_instead_of_growing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.db");
        let store = SqliteStore::file(&path).unwrap();
        let body = Json::string(&"x".repeat(300_000));
        let log_max = u64::from(super::PAGES.unsigned_abs()) * PAGE_BYTES * 2;
        let (mut written, mut largest) = (0, 0);
        for number in 0_u128.. {
            let at = BlobRef {
                id: BlobId::from_bytes(number.to_be_bytes()),
                bytes: 300_000,
                expires_at: Timestamp::EPOCH,
            };
            store.put_blob(&at, &body).await.unwrap();
            let log = std::fs::metadata(folder.path().join("data.db-wal")).unwrap().len();
            largest = log.max(largest);
            written += 300_000;
            if written > 3 * log_max {
                break;
            }
        }
        // On a busy machine, the other thread moves it somewhat later.
        assert!(largest < written / 2, "{largest} bytes of log in {written} bytes");
        assert!(std::fs::metadata(&path).unwrap().len() > log_max, "the file has what the log had");
    }
}

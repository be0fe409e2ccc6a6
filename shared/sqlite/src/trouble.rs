//! Trouble with the disk: one log line when it begins, one when it is over, and a sentence while it lasts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Error, ErrorCode};

/// Time without a refused commit after which a commit that is written ends the trouble. On a disk that is nearly full,
/// large commits fail between small ones that succeed.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

/// Whether the disk takes commits.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<Current>>);

struct Current {
    what: &'static str,
    began: Instant,
    last: Instant,
    refused: u64,
}

impl Trouble {
    /// Notes that a commit was refused because of the disk.
    pub(crate) fn refused(&self, error: &Error) {
        let Some(what) = error.sqlite_error_code().and_then(of_disk) else { return };
        let now = Instant::now();
        let mut current = self.lock();
        let trouble = current.get_or_insert_with(|| {
            let code = error.sqlite_error().map(|error| error.extended_code);
            tracing::error!(code, %error, "{what}: calls that write are refused until the disk takes them");
            Current { what, began: now, last: now, refused: 0 }
        });
        (trouble.what, trouble.last) = (what, now);
        trouble.refused += 1;
    }

    /// Notes that a commit was written.
    pub(crate) fn written(&self) {
        let mut current = self.lock();
        if let Some(over) = current.take_if(|trouble| trouble.last.elapsed() >= QUIET) {
            let (seconds, refused) = (over.began.elapsed().as_secs(), over.refused);
            tracing::warn!(seconds, refused, "the disk takes commits again");
        }
    }

    /// Notes that commits are refused because the files aren't in their folder any more.
    pub(crate) fn lost(&self, what: &'static str) {
        let now = Instant::now();
        let mut current = self.lock();
        if current.as_ref().is_none_or(|trouble| trouble.what != what) {
            tracing::error!("{what}: calls are refused");
        }
        let trouble = current.get_or_insert(Current { what, began: now, last: now, refused: 0 });
        (trouble.what, trouble.last) = (what, now);
        trouble.refused += 1;
    }

    /// Notes that nothing can be written any more by this process.
    pub(crate) fn ended(&self) {
        let now = Instant::now();
        let what = "the thread that writes has ended: restart the process";
        self.lock().get_or_insert_with(|| {
            tracing::error!("{what}");
            Current { what, began: now, last: now, refused: 0 }
        });
    }

    /// What is wrong now, if something is.
    pub(crate) fn now(&self) -> Option<&'static str> {
        self.lock().as_ref().map(|trouble| trouble.what)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Current>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a code says about the disk. Other codes are about one commit, or about what is stored.
pub(crate) const fn of_disk(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::DiskFull => Some("the disk is full"),
        ErrorCode::SystemIoFailure => Some("the disk fails: the system reports an I/O error"),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Some("the data file can only be read"),
        ErrorCode::CannotOpen => Some("the data file or its log can't be opened"),
        _ => None,
    }
}

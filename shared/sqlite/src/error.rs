//! What can go wrong, by `SQLite`'s result codes.

use std::path::PathBuf;

use rusqlite::ErrorCode;
use tickover_service::ports::StoreError;

use crate::trouble::of_disk;

/// Why a database can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder can't be made, the file can't be read or written, or the path is a folder.
    #[error("{path:?} can't be opened for reading and writing")]
    File { path: PathBuf, source: std::io::Error },
    /// Another process has the file open, under this name or another one.
    #[error("{path:?} is in use by another process")]
    InUse { path: PathBuf },
    /// The file is a database, but another program's.
    #[error("{path:?} is a database of another program; nothing was written to it")]
    Foreign { path: PathBuf },
    /// The file is of Tickover before it had its own format.
    #[error(
        "{path:?} was written by an early version of Tickover, which this one can't read; start with a new file, or move this one away"
    )]
    Obsolete { path: PathBuf },
    /// A later version of Tickover has written the file.
    #[error("{path:?} has schema {found}, and this version of Tickover knows schemas up to {known}")]
    Newer { path: PathBuf, found: i64, known: i64 },
    /// The file isn't a database, or a damaged one.
    #[error("{path:?} is not a database, or it is damaged")]
    Damaged { path: PathBuf, source: rusqlite::Error },
    /// `SQLite` failed.
    #[error("the database can't be opened")]
    Engine(#[from] rusqlite::Error),
}

/// What a job of the writer failed with.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An answer to the caller. The job has written nothing that needs to be undone.
    Refused(StoreError),
    /// The engine failed: nothing of the transaction is written.
    Engine(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Engine(error) => engine(&error),
        }
    }
}

/// What a caller whose job was refused is told. Trouble with the disk is logged by `trouble`, once for all calls.
pub(crate) fn refusal(error: &rusqlite::Error) -> StoreError {
    let is_of_disk = error.sqlite_error_code().is_some_and(|code| of_disk(code).is_some());
    if is_of_disk {
        StoreError::Unavailable { reason: error.to_string(), is_logged: true }
    } else {
        engine(error)
    }
}

/// An error of the engine as the port has it.
pub(crate) fn engine(error: &rusqlite::Error) -> StoreError {
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Throttled,
        // Without a code: a column of another type, or a row too few. This build has written neither.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => StoreError::Corrupt { reason },
        // A full or failing disk: the same call may succeed later.
        Some(_) => StoreError::Unavailable { reason, is_logged: false },
    }
}

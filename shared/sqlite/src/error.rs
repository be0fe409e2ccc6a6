//! What can go wrong, by `SQLite`'s result codes.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tickover_service::ports::StoreError;

use crate::trouble::of_disk;

/// Why a database can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no file, and none is made.
    #[error("{path:?} doesn't exist")]
    Missing { path: PathBuf },
    /// The path is a folder.
    #[error("{path:?} is a folder: name a file in it")]
    Folder { path: PathBuf },
    /// The path is a pipe, a device or a socket.
    #[error("{path:?} is not a regular file: name one")]
    Irregular { path: PathBuf },
    /// The folder can't be made, or the file can't be read or written.
    #[error("{path:?} can't be opened for reading and writing")]
    File { path: PathBuf, source: std::io::Error },
    /// Another process has the file open, under this name or another one.
    #[error("{path:?} is in use by another process: stop that one first, or name another file")]
    InUse { path: PathBuf },
    /// The file is a database, but another program's.
    #[error("{path:?} is a database of another program, and nothing was written to it: name another file")]
    Foreign { path: PathBuf },
    /// Nothing was ever written to the file.
    #[error("{path:?} has no data of Tickover")]
    Empty { path: PathBuf },
    /// The file is of Tickover before it had its own format.
    #[error(
        "{path:?} was written by an early version of Tickover, which this one can't read; start with a new file, or move this one away"
    )]
    Obsolete { path: PathBuf },
    /// A later version of Tickover has written the file.
    #[error(
        "{path:?} has schema {found}, and this version of Tickover knows schemas up to {known}: start the version that wrote it, or a later one"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    /// The file isn't a database, or a damaged one.
    #[error("{path:?} is not a database, or it is damaged: name another file, or restore a copy of it")]
    Damaged { path: PathBuf, source: rusqlite::Error },
    /// `SQLite` failed.
    #[error("{path:?} can't be read or written")]
    Engine { path: PathBuf, source: rusqlite::Error },
}

impl OpenError {
    /// An error of the engine at this file.
    pub(crate) fn of_file(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse { path },
            _ => Self::Engine { path, source },
        }
    }
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

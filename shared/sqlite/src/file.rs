//! Data files: their paths, their locks, and opening one that exists.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::OpenError;
use crate::schema;

/// `SQLite` takes "", ":memory:" and "file:…" for other things than a file's name. An absolute path is none of them.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    std::path::absolute(path).map_err(|source| OpenError::File { path: path.to_owned(), source })
}

/// The lock on the file itself, which holds whatever path leads to it.
pub(crate) fn acquire(path: &Path, create: bool) -> Result<File, OpenError> {
    let fail = |source| OpenError::File { path: path.to_owned(), source };
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(OpenError::Irregular { path: path.to_owned() });
    }
    let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path);
    let file = match file {
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            return Err(OpenError::Folder { path: path.to_owned() });
        }
        file => file.map_err(fail)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(fs::TryLockError::Error(source)) => Err(fail(source)),
    }
}

/// A connection to a file that exists and has data of Tickover. Only one that `writes` can change it.
pub(crate) fn open_existing(path: &Path, writes: bool) -> Result<Connection, OpenError> {
    let path = absolute(path)?;
    refuse_missing(&path)?;
    schema::open_existing(&path, writes)
}

/// Refuses a path where there is no file.
pub(crate) fn refuse_missing(path: &Path) -> Result<(), OpenError> {
    let path = path.to_owned();
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(OpenError::Folder { path }),
        // To open a pipe would wait for its other end.
        Ok(found) if !found.is_file() => Err(OpenError::Irregular { path }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(OpenError::Missing { path }),
        Err(source) => Err(OpenError::File { path, source }),
    }
}

/// The bytes of a data file and of its log, as far as they exist.
pub(crate) fn sizes(path: &Path) -> (u64, u64) {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    let mut log = OsString::from(path);
    log.push("-wal");
    (bytes(path), bytes(Path::new(&log)))
}

//! A copy of a data file, and the same file without the space that it doesn't use.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::OpenError;
use crate::file::{absolute, acquire, log_of, open_existing, read_existing, refuse_missing, sizes};
use crate::mark;

/// Why a copy can't be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The data file can't be opened, or it is damaged.
    #[error(transparent)]
    Source(#[from] OpenError),
    /// There is something of that name.
    #[error("{to:?} exists already: choose another name for the copy")]
    Exists { to: PathBuf },
    /// The file for the copy can't be made.
    #[error("the copy {to:?} can't be made")]
    Target { to: PathBuf, source: io::Error },
    /// The copy can't be written, perhaps because the disk is full. What was written of it is deleted.
    #[error("the copy {to:?} can't be written; what was written of it is deleted")]
    Write { to: PathBuf, source: rusqlite::Error },
}

/// Copies a data file: all commits that were acknowledged before, none by half. Returns the size of the copy in bytes.
///
/// A server may have the file open meanwhile, and goes on writing. The copy is one file without a log, is readable for
/// those who can read the data file, and is on the disk when this returns.
pub fn backup(from: &Path, to: &Path) -> Result<u64, BackupError> {
    read_existing(from, |connection, has_no_log| copy(connection, from, to, has_no_log))
}

fn copy(connection: &Connection, from: &Path, to: &Path, has_no_log: bool) -> Result<u64, BackupError> {
    let to = absolute(to)?;
    let fail = |source| BackupError::Target { to: to.clone(), source };
    // Until it is complete, only for its owner: it may have data that others mustn't read.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(BackupError::Exists { to }),
        Err(error) => return Err(fail(error)),
    }
    // From here on the file is ours.
    let written = write(connection, from, &to, has_no_log);
    if written.is_err() {
        // It is empty or a part of a copy. The error of the copy counts.
        let _deleted = fs::remove_file(&to);
    }
    written
}

fn write(connection: &Connection, from: &Path, to: &Path, has_no_log: bool) -> Result<u64, BackupError> {
    let fail = |source| BackupError::Target { to: to.to_owned(), source };
    let name = to.to_str().ok_or_else(|| fail(io::ErrorKind::InvalidFilename.into()))?;
    // The engine writes into a file that exists only if it is empty.
    connection.execute("VACUUM INTO ?1", [name]).map_err(|source| {
        match OpenError::of_file(from, source) {
            OpenError::Engine { source, .. } => BackupError::Write { to: to.to_owned(), source },
            of_source => of_source.into(),
        }
    })?;
    if !has_no_log {
        // No process has the copy open. Of a file that lost its log, the copy says the same.
        let of_copy = |source| BackupError::Write { to: to.to_owned(), source };
        Connection::open(to).and_then(|copy| mark::clear(&copy)).map_err(of_copy)?;
    }
    let permissions = fs::metadata(from).map_err(fail)?.permissions();
    fs::set_permissions(to, permissions).map_err(fail)?;
    File::open(to).and_then(|file| file.sync_all()).map_err(fail)?;
    if let Some(folder) = to.parent() {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
    }
    Ok(sizes(to).0)
}

/// Rewrites a data file without the space that it doesn't use. Returns its size in bytes, with its log, before and
/// after that.
///
/// No server may have the file open. The disk needs room for another two copies meanwhile. If it is interrupted, the
/// file is as before.
pub fn compact(path: &Path) -> Result<(u64, u64), OpenError> {
    let path = absolute(path)?;
    refuse_missing(&path)?;
    let _lock = acquire(&path, false)?;
    let total = || {
        let (file, log) = sizes(&path);
        file + log
    };
    let before = total();
    let has_no_log = !log_of(&path).exists();
    let connection = open_existing(&path, true)?;
    let fail = |error| OpenError::of_file(&path, error);
    if !has_no_log {
        mark::clear(&connection).map_err(fail)?;
    }
    // What is rewritten may be larger than the memory.
    connection.pragma_update(None, "temp_store", "file").map_err(fail)?;
    connection.execute_batch("VACUUM").map_err(fail)?;
    // The last connection moves the log into the file.
    connection.close().map_err(|(_, error)| fail(error))?;
    Ok((before, total()))
}

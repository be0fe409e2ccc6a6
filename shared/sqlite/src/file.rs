//! Data files: their paths, their locks, and opening one that exists.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::OpenError;
use crate::schema;

/// What is said of files that aren't in their folder any more.
const DELETED: &str =
    "the data file or its log was deleted or moved away: put both back, or stop this process";
const REPLACED: &str =
    "the data file or its log was replaced under this process: stop it, put both in place, and start again";

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

/// The log of a data file. It is beside the file itself, whatever link leads there.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut log = OsString::from(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    log.push("-wal");
    log.into()
}

/// The bytes of a data file and of its log, as far as they exist.
pub(crate) fn sizes(path: &Path) -> (u64, u64) {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    (bytes(path), bytes(&log_of(path)))
}

/// Reads a file that exists and has data of Tickover. `read` also learns whether there is no log beside it. If there is
/// none, none is left: the next start must see that, too.
pub(crate) fn read_existing<T, E: From<OpenError>>(
    path: &Path,
    read: impl FnOnce(&Connection, bool) -> Result<T, E>,
) -> Result<T, E> {
    let path = absolute(path)?;
    let log = log_of(&path);
    let has_no_log = !log.exists();
    let connection = open_existing(&path, false)?;
    let answer = read(&connection, has_no_log);
    drop(connection);
    if has_no_log
        && fs::metadata(&log).is_ok_and(|found| found.len() == 0)
        && let Ok(_lock) = acquire(&path, false)
    {
        // The engine made it, and no server has it open.
        let _deleted = fs::remove_file(&log);
    }
    answer
}

/// The files that a process has open, as they are in their folder. What is written to a file that isn't there any more is
/// lost with the process.
pub(crate) struct Watched(Vec<(PathBuf, (u64, u64))>);

impl Watched {
    /// A data file and its log, as they are now.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let found = |path: PathBuf| fs::metadata(&path).map(|found| (path, (found.dev(), found.ino())));
        Ok(Self(vec![found(path.to_owned())?, found(log_of(path))?]))
    }

    /// What has happened to them, if they aren't in their folder any more.
    pub(crate) fn lost(&self) -> Option<&'static str> {
        self.0.iter().find_map(|(path, known)| match fs::metadata(path) {
            Ok(found) if (found.dev(), found.ino()) == *known => None,
            Ok(_) => Some(REPLACED),
            Err(error) if error.kind() == ErrorKind::NotFound => Some(DELETED),
            // It can't be seen whether they are there.
            Err(_) => None,
        })
    }
}

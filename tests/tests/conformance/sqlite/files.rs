//! Paths and files that the store refuses, and what it leaves of them.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tickover_sqlite::{OpenError, SqliteStore};

fn refused(path: &Path) -> OpenError {
    SqliteStore::file(path).expect_err("it is opened")
}

/// Makes a database that isn't ours.
fn database(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn one_file_is_open_once_whatever_name_it_is_opened_under() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let (symbolic, hard) = (folder.path().join("symbolic"), folder.path().join("hard"));
    let store = SqliteStore::file(&path).unwrap();
    std::os::unix::fs::symlink(&path, &symbolic).unwrap();
    fs::hard_link(&path, &hard).unwrap();
    for name in [&path, &symbolic, &hard] {
        assert!(matches!(refused(name), OpenError::InUse { .. }), "{}", name.display());
    }
    drop(store);
    SqliteStore::file(&symbolic).unwrap();
}

#[test]
fn another_programs_database_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sql) in [
        ("tables", "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')"),
        ("id", "PRAGMA application_id = 42; CREATE TABLE notes (text TEXT)"),
    ] {
        let path = folder.path().join(name);
        database(&path, sql);
        let before = fs::read(&path).unwrap();
        assert!(matches!(refused(&path), OpenError::Foreign { .. }), "{name}");
        assert_eq!(fs::read(&path).unwrap(), before, "{name}");
    }
}

#[test]
fn a_file_of_an_early_version_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("early");
    database(&path, "CREATE TABLE _config (key TEXT); CREATE TABLE _tables (name TEXT)");
    let error = refused(&path);
    assert!(matches!(error, OpenError::Obsolete { .. }), "{error}");
    assert!(error.to_string().contains("start with a new file"), "{error}");
}

#[test]
fn a_file_of_a_later_version_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later");
    drop(SqliteStore::file(&path).unwrap());
    database(&path, "PRAGMA user_version = 99");
    let error = refused(&path);
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    let version: i64 =
        Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[test]
fn what_is_no_database_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "not a database, but long enough to have a header of a hundred bytes. ".repeat(8);
    fs::write(&path, &text).unwrap();
    assert!(matches!(refused(&path), OpenError::Damaged { .. }));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_folder_and_a_path_below_a_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(refused(folder.path()), OpenError::Folder { .. }));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(refused(&file.join("data.db")), OpenError::File { .. }));
}

#[test]
fn missing_folders_are_made() {
    let folder = tempfile::tempdir().unwrap();
    SqliteStore::file(&folder.path().join("a/b/data.db")).unwrap();
}

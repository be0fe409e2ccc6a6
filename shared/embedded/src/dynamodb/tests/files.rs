//! The content of the files after a write.

use std::path::Path;

use super::super::Error;
use super::{Embedded, create_table, get, put, thing};

#[tokio::test]
async fn a_file_opened_again_has_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    {
        let client = Embedded::file(&path).unwrap().client();
        create_table(&client).await;
        put(&client, thing("a", "red", 1)).await;
    }

    let client = Embedded::file(&path).unwrap().client();

    assert_eq!(get(&client, "a").await, Some(thing("a", "red", 1)));
}

/// Simulates a process that is killed: the database is neither closed nor flushed, so a copy of the files has what the
/// kernel had got when the write was acknowledged.
#[tokio::test]
async fn an_acknowledged_write_is_in_the_files_without_closing_the_database() {
    let (folder, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let running = Embedded::file(&folder.path().join("db")).unwrap();
    create_table(&running.client()).await;
    put(&running.client(), thing("a", "red", 1)).await;

    for name in ["db", "db-wal"] {
        std::fs::copy(folder.path().join(name), copies.path().join(name)).unwrap();
    }
    let copy = Embedded::file(&copies.path().join("db")).unwrap();

    assert_eq!(get(&copy.client(), "a").await, Some(thing("a", "red", 1)));
    drop(running);
}

#[tokio::test]
async fn databases_in_memory_share_nothing() {
    let (one, other) = (Embedded::memory().unwrap(), Embedded::memory().unwrap());
    create_table(&one.client()).await;

    assert_eq!(one.client().list_tables().send().await.unwrap().table_names().len(), 1);
    assert!(other.client().list_tables().send().await.unwrap().table_names().is_empty());
}

#[test]
fn an_empty_path_is_refused_and_not_a_temporary_database() {
    assert!(matches!(Embedded::file(Path::new("")), Err(Error::UnresolvedPath { .. })));
}

#[test]
fn a_missing_folder_is_an_error_and_not_a_new_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent").join("db");

    assert!(matches!(Embedded::file(&path), Err(Error::Engine(_))));
    assert!(!path.exists());
}

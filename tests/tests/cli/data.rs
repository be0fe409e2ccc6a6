//! The commands about data files, and the files that the server refuses.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};
use tickover_sqlite::SqliteStore;
use tickover_tests::process::{Ended, Process};

/// Runs a command of the tool to its end.
async fn tickover(args: &[&str]) -> Ended {
    Process::tickover(args).expect("a process").ended().await.expect("an end")
}

/// A server over this file, and its address.
async fn serve(file: &Path) -> (Process, String) {
    let args = ["dev", "--listen", "127.0.0.1:0", "--data", text(file)];
    let server = Process::tickover(&args).expect("a server");
    let address = server.address().await.expect("an address");
    (server, address)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

async fn schedule(address: &str, id: &str, input: &str) {
    let task = json!({"id": id, "queue": "q", "kind": "k", "input": input, "idempotency_key": id});
    let request = reqwest::Client::new().post(format!("{address}/v1/tasks")).json(&task);
    assert_eq!(request.send().await.expect("an answer").status(), 201);
}

async fn status(address: &str, id: &str) -> Value {
    let answer = reqwest::get(format!("{address}/v1/tasks/{id}")).await.expect("an answer");
    answer.json::<Value>().await.expect("JSON")["task"]["status"].clone()
}

#[tokio::test]
async fn a_copy_beside_a_running_server_has_all_that_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, copy) = (folder.path().join("data.db"), folder.path().join("copy.db"));
    let (server, address) = serve(&file).await;
    for number in 0..20 {
        schedule(&address, &format!("t-{number}"), &"x".repeat(3_000)).await;
    }
    let made = tickover(&["data", "backup", text(&file), text(&copy)]).await;
    assert!(made.status.success() && made.stdout.contains("copied to"), "{made:?}");
    schedule(&address, "later", "small").await;
    let again = tickover(&["data", "backup", text(&file), text(&copy)]).await;
    assert_eq!(again.status.code(), Some(1));
    assert!(again.stderr.contains("exists already: choose another name"), "{}", again.stderr);
    server.interrupt().await.expect("an end");

    let (_server, address) = serve(&copy).await;
    for number in 0..20 {
        assert_eq!(status(&address, &format!("t-{number}")).await, "pending");
    }
    assert_eq!(status(&address, "later").await, Value::Null);
}

/// Calls the API, and returns the lease of the answer's first task if there is one.
async fn call(address: &str, path: &str, body: &Value) -> String {
    let answer = reqwest::Client::new().post(format!("{address}/v1/{path}")).json(body).send().await;
    let answer = answer.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    let answer: Value = answer.json().await.expect("JSON");
    answer["tasks"][0]["lease"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_file_is_whole_in_which_tasks_have_changed_their_order_among_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let (server, address) = serve(&file).await;
    let schedule = async |id: &str, rest: Value| {
        let mut task = json!({"id": id, "queue": "q", "kind": "k"});
        task.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
        call(&address, "tasks", &task).await;
    };
    let claim =
        async |id: &str| call(&address, &format!("tasks/{id}/claim"), &json!({"worker": "ada"})).await;
    let one = json!({"concurrency": [{"key": "c", "limit": 1}], "priority": "low"});
    for id in ["runs", "comes", "waits"] {
        schedule(id, one.clone()).await;
        if id == "runs" {
            let lease = claim(id).await;
            schedule("behind", one.clone()).await;
            call(&address, &format!("tasks/{id}/complete"), &json!({"lease": lease})).await;
        }
    }
    let rate = json!({"rate": {"key": "r", "limit": 1, "per": "1h"}});
    schedule("starts", rate.clone()).await;
    schedule("put-off", json!({"delay": "0s", "retry": {"max_attempts": 3}, "rate": rate["rate"]})).await;
    for id in ["behind", "starts", "put-off"] {
        claim(id).await;
    }
    let found = tickover(&["data", "check", text(&file)]).await;
    assert!(found.stdout.ends_with("no problems found\n"), "{}", found.stdout);
    server.interrupt().await.expect("an end");
}

#[tokio::test]
async fn a_check_counts_what_is_there_and_names_records_that_do_not_agree_with_their_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let (server, address) = serve(&file).await;
    for id in ["a", "b", "c"] {
        schedule(&address, id, &"x".repeat(3_000)).await;
    }
    let found = tickover(&["data", "check", text(&file)]).await;
    assert!(found.status.success(), "{found:?}");
    for (name, value) in [("schema", "6"), ("tasks", "3"), ("idempotency keys", "3"), ("payloads", "3")] {
        assert!(found.stdout.contains(&format!("{name:<40}{value}\n")), "{name}: {}", found.stdout);
    }
    assert!(found.stdout.ends_with("no problems found\n"), "{}", found.stdout);
    server.interrupt().await.expect("an end");

    let database = Connection::open(&file).expect("a database");
    let damage = "UPDATE record SET version = version + 1 WHERE kind = 0 AND id = 'a';
         UPDATE record SET id = 'z' WHERE kind = 0 AND id = 'b';
         UPDATE record SET body = '{}' WHERE kind = 0 AND id = 'c'";
    database.execute_batch(damage).expect("changes");
    drop(database);
    let found = tickover(&["data", "check", text(&file)]).await;
    assert_eq!(found.status.code(), Some(1));
    for problem in [
        r#"task "a": its column version and its body differ"#,
        r#"task "z": its column id and its body differ"#,
        r#"task "c": its body isn't of a format that this build reads"#,
    ] {
        assert!(found.stdout.contains(problem), "{problem}: {}", found.stdout);
    }
    assert!(found.stderr.contains("3 problems in "), "{}", found.stderr);
}

#[tokio::test]
async fn compacting_gives_unused_space_back_and_needs_the_file_for_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let (server, address) = serve(&file).await;
    for number in 0..50 {
        schedule(&address, &format!("t-{number}"), &"x".repeat(9_000)).await;
    }
    schedule(&address, "small", "kept in its record").await;
    let refused = tickover(&["data", "compact", text(&file)]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("is in use by another process: stop that one first"), "{refused:?}");
    server.interrupt().await.expect("an end");

    let database = Connection::open(&file).expect("a database");
    database.execute("DELETE FROM blob", []).expect("changes");
    drop(database);
    let before = fs::metadata(&file).expect("a file").len();
    let done = tickover(&["data", "compact", text(&file)]).await;
    let after = fs::metadata(&file).expect("a file").len();
    let saved = before - after;
    assert!(saved > 400_000, "{before} {after}");
    assert_eq!(done.stdout, format!("{saved} bytes saved: {before} before, {after} now\n"), "{done:?}");
    let (_server, address) = serve(&file).await;
    assert_eq!(status(&address, "small").await, "pending");
}

/// Makes what is at a path; and what the error says, besides the path.
type Wrong = (&'static str, fn(&Path), &'static str);

/// What no command takes for a data file.
const WRONG: [Wrong; 6] = [
    ("folder", |path| fs::create_dir(path).expect("a folder"), "is a folder: name a file in it"),
    (
        "other",
        |path| database(path, "CREATE TABLE notes (text TEXT)"),
        "is a database of another program, and nothing was written to it: name another file",
    ),
    (
        "early",
        |path| database(path, "CREATE TABLE _tables (name TEXT)"),
        "was written by an early version of Tickover, which this one can't read; start with a new file, or move",
    ),
    ("later", later, "start the version that wrote it, or a later one"),
    (
        "text",
        |path| fs::write(path, "not a database. ".repeat(40)).expect("a file"),
        "is not a database, or it is damaged: name another file, or restore a copy of it",
    ),
    ("damaged", damaged, "is not a database, or it is damaged: name another file, or restore a copy of it"),
];

fn database(path: &Path, sql: &str) {
    Connection::open(path).expect("a database").execute_batch(sql).expect("changes");
}

fn later(path: &Path) {
    drop(SqliteStore::file(path).expect("a store"));
    database(path, "PRAGMA user_version = 99");
}

fn damaged(path: &Path) {
    drop(SqliteStore::file(path).expect("a store"));
    let mut bytes = fs::read(path).expect("a file");
    bytes[100..].fill(0xAA);
    fs::write(path, bytes).expect("a file");
}

/// The first page is whole: it has the settings and a part of the schema.
fn damaged_later(path: &Path) {
    drop(SqliteStore::file(path).expect("a store"));
    let mut bytes = fs::read(path).expect("a file");
    bytes[4_096..].fill(0xAA);
    fs::write(path, bytes).expect("a file");
}

#[track_caller]
fn is_refused(ended: &Ended, path: &Path, remedy: &str) {
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let [line] = lines[..] else { panic!("{}", ended.stderr) };
    assert!(line.starts_with("error: ") && line.contains(text(path)) && line.contains(remedy), "{line}");
}

#[tokio::test]
async fn a_server_refuses_a_wrong_file_in_one_line_with_its_path_and_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = async |path: &Path| tickover(&["dev", "--listen", "127.0.0.1:0", "--data", text(path)]).await;
    let later: Wrong = ("later-pages", damaged_later, "restore a copy of it");
    for (name, make, remedy) in WRONG.into_iter().chain([later]) {
        let path = folder.path().join(name);
        make(&path);
        is_refused(&start(&path).await, &path, remedy);
    }
    let (used, link) = (folder.path().join("used"), folder.path().join("link"));
    let _server = serve(&used).await;
    std::os::unix::fs::symlink(&used, &link).expect("a link");
    for path in [&used, &link] {
        is_refused(&start(path).await, path, "is in use by another process: stop that one first");
    }
}

#[tokio::test]
async fn the_commands_about_data_refuse_wrong_files_and_make_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy");
    let (missing, empty): (Wrong, Wrong) = (
        ("missing", |_| (), "doesn't exist"),
        ("empty", |path| fs::write(path, "").expect("a file"), "has no data of Tickover"),
    );
    for (name, make, remedy) in WRONG.into_iter().chain([missing, empty]) {
        let path = folder.path().join(name);
        make(&path);
        let before = fs::read(&path).ok();
        for args in [
            &["data", "check", text(&path)][..],
            &["data", "compact", text(&path)],
            &["data", "backup", text(&path), text(&copy)],
        ] {
            is_refused(&tickover(args).await, &path, remedy);
        }
        assert_eq!(fs::read(&path).ok(), before, "{name}");
        assert!(!copy.exists(), "{name}");
    }
}

#[tokio::test]
async fn a_check_finds_what_the_start_needs_and_goes_on_after_unreadable_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("whole.db");
    let (server, address) = serve(&whole).await;
    for id in ["a", "b"] {
        schedule(&address, id, &"x".repeat(3_000)).await;
    }
    server.interrupt().await.expect("an end");
    let unreadable = "UPDATE blob SET body = CAST(x'ff' AS TEXT) WHERE row = (SELECT min(row) FROM blob);
         UPDATE blob SET body = '{' WHERE row = (SELECT max(row) FROM blob);
         UPDATE record SET id = CAST(x'61ff' AS TEXT) WHERE kind = 0 AND id = 'a';
         UPDATE record SET version = version + 1 WHERE kind = 0 AND id = 'b'";
    let cases: [(&str, &[&str]); 5] = [
        ("DROP INDEX record_by_lane", &["the index record_by_lane is missing"]),
        ("DROP TABLE label", &["the table label is missing", "the index label_by_row is missing"]),
        (
            "PRAGMA user_version = 1",
            &["the table label is of a later schema than 1", "table record isn't that of schema 1"],
        ),
        ("ALTER TABLE segment RENAME COLUMN body TO text", &["the table segment isn't that of schema 6"]),
        (
            unreadable,
            &["task \"a\u{fffd}\": its column id", "task \"b\": its column version", "it isn't JSON"],
        ),
    ];
    for (damage, problems) in cases {
        let file = folder.path().join("damaged.db");
        fs::copy(&whole, &file).expect("a copy");
        database(&file, damage);
        let found = tickover(&["data", "check", text(&file)]).await;
        assert_eq!(found.status.code(), Some(1), "{damage}: {found:?}");
        for problem in problems {
            assert!(found.stdout.contains(problem), "{damage}: {problem}: {}", found.stdout);
        }
    }
    let found = tickover(&["data", "check", text(&folder.path().join("damaged.db"))]).await;
    assert_eq!(found.stdout.matches("it isn't JSON").count(), 2, "{}", found.stdout);
    assert!(tickover(&["data", "check", text(&whole)]).await.status.success());
}

#[tokio::test]
async fn a_pipe_is_no_data_file_and_nothing_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (pipe, copy) = (folder.path().join("pipe"), folder.path().join("copy"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    for args in [
        &["data", "check", text(&pipe)][..],
        &["data", "compact", text(&pipe)],
        &["data", "backup", text(&pipe), text(&copy)],
        &["dev", "--listen", "127.0.0.1:0", "--data", text(&pipe)],
    ] {
        is_refused(&tickover(args).await, &pipe, "is not a regular file");
    }
}

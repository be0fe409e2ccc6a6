//! A data file, or its log, that is deleted, moved, replaced or left behind.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tickover_tests::process::{Process, until};

use super::start;

struct Scene {
    server: Process,
    address: String,
    http: reqwest::Client,
    folder: TempDir,
}

impl Scene {
    async fn start() -> Self {
        Self::over(tempfile::tempdir().unwrap()).await
    }

    async fn over(folder: TempDir) -> Self {
        let (server, address) = start(&folder.path().join("data.db").display().to_string()).await;
        Self { server, address, http: reqwest::Client::new(), folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("data.db")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("data.db-wal")
    }

    async fn schedule(&self, id: &str) -> StatusCode {
        let task = json!({"id": id, "queue": "q", "kind": "k"});
        self.http.post(format!("{}/v1/tasks", self.address)).json(&task).send().await.unwrap().status()
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let answer = self.http.get(format!("{}{path}", self.address)).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    async fn storage(&self) -> Value {
        self.get("/healthz").await.1["storage"].clone()
    }

    /// How many lines of the log have this text.
    fn lines(&self, level: &str, text: &str) -> usize {
        let stderr = self.server.stderr();
        stderr.lines().filter(|line| line.contains(level) && line.contains(text)).count()
    }

    /// No call is answered with anything that isn't in the file.
    async fn refuses(&self, why: &str) {
        assert_eq!(self.schedule("refused").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(self.schedule("refused").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(self.get("/v1/tasks/t-1").await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert!(self.storage().await.as_str().unwrap().contains(why), "{}", self.storage().await);
        assert_eq!(self.lines("ERROR", why), 1, "{}", self.server.output_text());
    }
}

fn away(path: &Path) -> PathBuf {
    path.with_extension("away")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_file_that_is_moved_away_is_noticed_and_taken_again_when_it_is_back() {
    let scene = Scene::start().await;
    assert_eq!(scene.schedule("t-1").await, StatusCode::CREATED);
    fs::rename(scene.file(), away(&scene.file())).unwrap();
    scene.refuses("deleted or moved away").await;
    fs::rename(away(&scene.file()), scene.file()).unwrap();
    until("health", async || scene.storage().await.is_null().then_some(())).await;
    assert_eq!(scene.schedule("t-2").await, StatusCode::CREATED);
    assert_eq!(scene.get("/v1/tasks/refused").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_file_or_a_log_that_is_deleted_or_replaced_takes_no_commit() {
    for replaced in [false, true] {
        for of_log in [false, true] {
            let scene = Scene::start().await;
            assert_eq!(scene.schedule("t-1").await, StatusCode::CREATED);
            let path = if of_log { scene.log() } else { scene.file() };
            let content = fs::read(&path).unwrap();
            fs::rename(&path, away(&path)).unwrap();
            if replaced {
                fs::write(&path, content).unwrap();
            }
            scene.refuses(if replaced { "replaced" } else { "deleted" }).await;
            scene.server.interrupt().await.unwrap();
            if !of_log {
                // The orderly end touches no data file that isn't its own. (What the log had is moved into the file.)
                assert_eq!(path.exists(), replaced);
                fs::rename(away(&path), &path).unwrap();
            }
            let scene = Scene::over(scene.folder).await;
            assert_eq!(scene.get("/v1/tasks/t-1").await.0, StatusCode::OK, "{replaced} {of_log}");
            assert_eq!(scene.get("/v1/tasks/refused").await.0, StatusCode::NOT_FOUND);
        }
    }
}

const LOG_IS_MISSING: &str = "the log (-wal) of the last process is missing";

async fn check(scene: &Scene) -> String {
    let file = scene.file().display().to_string();
    Process::tickover(&["data", "check", &file]).unwrap().ended().await.unwrap().stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_missing_after_a_kill_is_told_by_the_check_and_at_the_start() {
    let scene = Scene::start().await;
    assert_eq!(scene.schedule("t-1").await, StatusCode::CREATED);
    scene.server.kill().await.unwrap();
    assert!(check(&scene).await.contains("no problems"));
    fs::remove_file(scene.log()).unwrap();
    for _ in 0..2 {
        assert!(check(&scene).await.contains("the log (-wal)"), "each time: it leaves no log behind");
    }
    let scene = Scene::over(scene.folder).await;
    scene.server.says(LOG_IS_MISSING).await;
    scene.server.interrupt().await.unwrap();
    let scene = Scene::over(scene.folder).await;
    assert_eq!((scene.schedule("t-2").await, scene.lines("WARN", LOG_IS_MISSING)), (StatusCode::CREATED, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_is_missing_after_an_orderly_stop_a_kill_with_it_or_a_checkpoint() {
    let scene = Scene::start().await;
    assert_eq!(scene.schedule("t-1").await, StatusCode::CREATED);
    scene.server.interrupt().await.unwrap();
    assert!(!scene.log().exists());
    assert!(check(&scene).await.contains("no problems"));
    let scene = Scene::over(scene.folder).await;
    assert_eq!(scene.schedule("t-2").await, StatusCode::CREATED);
    assert_eq!(scene.lines("WARN", LOG_IS_MISSING), 0);
    // A checkpoint empties the log.
    let database = rusqlite::Connection::open(scene.file()).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    scene.server.kill().await.unwrap();
    drop(database);
    fs::write(scene.log(), []).unwrap();
    let scene = Scene::over(scene.folder).await;
    assert_eq!(scene.get("/v1/tasks/t-2").await.0, StatusCode::OK);
    assert_eq!(scene.lines("WARN", LOG_IS_MISSING), 0);
    // A kill that leaves the log, and a copy.
    scene.server.kill().await.unwrap();
    let (file, copy) = (scene.file().display().to_string(), scene.folder.path().join("copy.db"));
    let copied = Process::tickover(&["data", "backup", &file, &copy.display().to_string()]).unwrap();
    assert!(copied.ended().await.unwrap().status.success());
    let scene = Scene::over(scene.folder).await;
    assert_eq!(
        (scene.get("/v1/tasks/t-2").await.0, scene.lines("WARN", LOG_IS_MISSING)),
        (StatusCode::OK, 0)
    );
    let (server, _) = start(&copy.display().to_string()).await;
    server.interrupt().await.unwrap();
    assert!(!server.stderr().contains(LOG_IS_MISSING), "{}", server.stderr());
}

//! A worker outside of Lambda: a process that polls the queues itself, is asked to stop, and dies.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::id::{EventName, ExecutionId, QueueName, WorkflowName};
use tickover_core::payload::Json;
use tickover_service::Service;
use tickover_service::executions::StartRequest;
use tickover_tests::emulator::{REGION, judge};
use tickover_tests::process::{self, Ended, Process, binary};
use tokio::process::Command;

use crate::deployment::Deployment;

/// A lease longer than any test, and one that ends soon.
const LONG: &str = "1h";
const SHORT: &str = "2s";
/// Enough time to finish in, and almost none.
const LONG_GRACE: &str = "40s";
const NO_GRACE: &str = "1ms";

/// A table and its queues, and the service through which tests read them.
struct PollingDeployment {
    deployment: Deployment,
    service: Service,
    /// The gates at which steps wait.
    gates: TempDir,
}

impl PollingDeployment {
    async fn open() -> Self {
        let deployment = Deployment::new().await;
        let service = deployment.service().await;
        Self { deployment, service, gates: TempDir::new().unwrap() }
    }

    fn worker(&self, lease: &str, grace: &str) -> Process {
        let environment = self.deployment.environment("worker", &judge());
        worker(&environment, &[lease, grace])
    }

    fn gate(&self, name: &str) -> PathBuf {
        self.gates.path().join(name)
    }

    async fn start(&self, id: &str, input: Value) {
        let workflow = WorkflowName::parse("errand").unwrap();
        let mut request = StartRequest::new(workflow, QueueName::parse("emails").unwrap());
        request.id = Some(ExecutionId::parse(id).unwrap());
        request.input = Json::parse(input.to_string());
        self.service.start(request).await.unwrap();
    }

    async fn record(&self, id: &str) -> Execution {
        self.service.execution(&ExecutionId::parse(id).unwrap()).await.unwrap().unwrap().execution
    }

    /// Waits until the execution waits for the signature, sends it, and returns the result.
    async fn sign(&self, id: &str) -> Value {
        let waits = async || {
            let record = self.record(id).await;
            assert!(record.closed().is_none(), "{record:?}");
            record.status() == ExecutionStatus::Waiting && record.open_steps == 0
        };
        until("it waits for the signature", waits).await;
        let (id, event) = (ExecutionId::parse(id).unwrap(), EventName::parse("signed").unwrap());
        self.service.send_event(&id, event, None, Json::parse(r#""Ada Bicycle""#)).await.unwrap();
        let output = async || self.service.execution(&id).await.unwrap().unwrap().output.is_some();
        until("it ends", output).await;
        let output = self.service.execution(&id).await.unwrap().unwrap().output.unwrap();
        serde_json::from_str(output.as_str()).unwrap()
    }
}

/// The worker's binary outside of Lambda, with this environment and without the test's own.
pub(crate) fn worker(environment: &[(&str, String)], args: &[&str]) -> Process {
    let mut command = Command::new(binary("polling_worker"));
    command.env_clear().envs([("AWS_REGION", REGION), ("AWS_EC2_METADATA_DISABLED", "true")]);
    command.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")]);
    command.envs(environment.iter().map(|(name, value)| (*name, value))).args(args);
    Process::from_command(&mut command).unwrap()
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    process::until(what, async || is_so().await.then_some(())).await;
}

/// How often a step has reached a gate.
fn visits(gate: &Path) -> usize {
    std::fs::read_to_string(gate).map_or(0, |text| text.lines().count())
}

fn open(gate: &Path) {
    std::fs::write(gate.with_extension("open"), "").unwrap();
}

/// Sends SIGTERM, as a container runtime does, while a step runs.
async fn terminate(worker: &Process) -> Ended {
    worker.signal("TERM").await.unwrap();
    worker.ended().await.unwrap()
}

#[tokio::test]
async fn a_program_beside_the_deployment_starts_and_waits_without_its_http_api() {
    let yard = PollingDeployment::open().await;
    let runs = yard.worker(LONG, LONG_GRACE);
    let asks = worker(&yard.deployment.environment("worker", &judge()), &["start", "errand-1"]);
    let asked = asks.ended().await.unwrap();
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    assert!(asked.stdout.contains("passed, books carried, signed by Ada"), "{asked:?}");
    // The program writes no logs.
    assert_eq!(asked.stderr, "");
    assert_eq!(terminate(&runs).await.status.code(), Some(0));

    let lost = worker(&[], &["start", "errand-2"]).ended().await.unwrap();
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
    assert!(lost.stderr.contains("environment: ") && lost.stderr.contains("TICKOVER_TABLE"), "{lost:?}");
}

#[tokio::test]
async fn a_polling_worker_runs_turns_and_remote_steps_and_stops_on_sigterm() {
    let yard = PollingDeployment::open().await;
    let worker = yard.worker(LONG, LONG_GRACE);
    yard.start("errand-1", json!({"parcels": [{"name": "books"}, {"name": "lamps"}]})).await;
    let log = yard.sign("errand-1").await;
    assert_eq!(log, json!(["passed", "books carried", "lamps carried", "signed by Ada Bicycle"]));
    let ended = terminate(&worker).await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("tickover_steps_ended_total"), "no metrics: {ended:?}");
    for payload in ["Bicycle", "lamps"] {
        assert!(!ended.stderr.contains(payload), "a payload is logged: {}", ended.stderr);
    }
}

#[tokio::test]
async fn a_worker_that_is_asked_to_stop_finishes_the_running_step_and_starts_no_new_one() {
    let yard = PollingDeployment::open().await;
    let (first, later) = (yard.gate("first"), yard.gate("later"));
    let worker = yard.worker(LONG, LONG_GRACE);
    yard.start("errand-2", json!({"gate": first, "parcels": [{"name": "books", "gate": later}]})).await;
    until("a step runs", async || visits(&first) == 1).await;
    worker.signal("TERM").await.unwrap();
    open(&first);
    let ended = worker.ended().await.unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("not everything could be finished"), "{}", ended.stderr);
    assert_eq!((visits(&first), visits(&later)), (1, 0), "the remote step is left to the next worker");

    let _next = yard.worker(LONG, LONG_GRACE);
    open(&later);
    assert_eq!(yard.sign("errand-2").await[1], json!("books carried"));
    assert_eq!((visits(&first), visits(&later)), (1, 1), "nothing ran twice");
}

#[tokio::test]
async fn a_worker_whose_grace_period_ends_releases_its_work() {
    let yard = PollingDeployment::open().await;
    let (inline, remote) = (yard.gate("inline"), yard.gate("remote"));
    let worker = yard.worker(LONG, NO_GRACE);
    yard.start("errand-3", json!({"gate": inline, "parcels": []})).await;
    yard.start("errand-4", json!({"parcels": [{"name": "books", "gate": remote}]})).await;
    until("both steps run", async || visits(&inline) == 1 && visits(&remote) == 1).await;
    let ended = terminate(&worker).await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("given back"), "{}", ended.stderr);

    // Its leases are longer than this test: so the next worker can only continue because the work was released.
    let _next = yard.worker(LONG, LONG_GRACE);
    open(&inline);
    open(&remote);
    assert_eq!(yard.sign("errand-3").await[0], json!("passed"));
    assert_eq!(yard.sign("errand-4").await[1], json!("books carried"));
    assert_eq!((visits(&inline), visits(&remote)), (2, 2));
}

#[tokio::test]
async fn another_worker_takes_over_from_a_dead_one_when_its_leases_end() {
    let yard = PollingDeployment::open().await;
    let (inline, remote) = (yard.gate("inline"), yard.gate("remote"));
    let worker = yard.worker(SHORT, LONG_GRACE);
    yard.start("errand-5", json!({"gate": inline, "parcels": []})).await;
    yard.start("errand-6", json!({"parcels": [{"name": "books", "gate": remote}]})).await;
    until("both steps run", async || visits(&inline) == 1 && visits(&remote) == 1).await;
    worker.kill().await.unwrap();
    let held = yard.record("errand-5").await;
    assert!(held.turn().is_some(), "its turn wasn't released: {held:?}");

    let (_next, tick) = (yard.worker(SHORT, LONG_GRACE), yard.deployment.start("tick").await);
    // Either of the two may have killed the worker: the next worker runs them one after the other, with nothing beside
    // them.
    let taken_over = async || {
        tick.invoke(json!({})).await.unwrap();
        visits(&inline) + visits(&remote) == 3
    };
    until("the next worker has taken one of them over", taken_over).await;
    open(&inline);
    open(&remote);
    assert_eq!(yard.sign("errand-5").await[0], json!("passed"));
    assert_eq!(yard.sign("errand-6").await[1], json!("books carried"));
}

#[tokio::test]
async fn a_step_that_kills_its_worker_ends_alone_and_work_beside_it_completes() {
    const MATES: [&str; 3] = ["books", "lamps", "chairs"];
    let yard = PollingDeployment::open().await;
    let bomb = yard.gate("bomb");
    yard.start("bomb", json!({"parcels": [{"name": "bomb", "gate": bomb, "deadly": true}]})).await;
    for mate in MATES {
        yard.start(mate, json!({"parcels": [{"name": mate, "gate": yard.gate(mate)}]})).await;
    }
    let mut worker = yard.worker(SHORT, LONG_GRACE);
    let all_run = async || MATES.iter().all(|mate| visits(&yard.gate(mate)) == 1) && visits(&bomb) == 1;
    until("all of them run in one process", all_run).await;
    open(&bomb);
    assert!(!worker.ended().await.unwrap().status.success());
    // Only now: otherwise one of them could end before the process dies.
    for mate in MATES {
        open(&yard.gate(mate));
    }

    let tick = yard.deployment.start("tick").await;
    let mut deaths = 1;
    while yard.record("bomb").await.closed().is_none() {
        assert!(deaths < 10, "it never ends as poisoned");
        worker = yard.worker(SHORT, LONG_GRACE);
        let has_died_or_done = async || {
            tick.invoke(json!({})).await.unwrap();
            visits(&bomb) > deaths || yard.record("bomb").await.closed().is_some()
        };
        until("it is tried again, or has ended", has_died_or_done).await;
        if visits(&bomb) > deaths {
            deaths += 1;
            assert!(!worker.ended().await.unwrap().status.success());
        }
    }
    let record = yard.record("bomb").await;
    assert_eq!(record.status(), ExecutionStatus::Failed);
    let why = format!("{:?}", record.closed());
    assert!(why.contains("poisoned"), "{why}");
    for mate in MATES {
        assert_eq!(yard.sign(mate).await[1], json!(format!("{mate} carried")));
    }
    assert!(
        MATES.iter().all(|mate| (2..=3).contains(&visits(&yard.gate(mate)))),
        "they were lost with the first death, perhaps with the second, and with no later one"
    );
    // Two deaths of all four together count for none of them. Then the guilty one has its losses, apart from them.
    assert_eq!(deaths, 2 + 4);
    drop(worker);
}

#[tokio::test]
async fn an_incomplete_environment_ends_the_worker_with_all_problems() {
    let without = |left_out: &[&str], more: &[(&'static str, &str)]| {
        let environment = Deployment::unreachable().environment("worker", "http://127.0.0.1:1");
        let kept = environment.into_iter().filter(|(name, _)| !left_out.contains(name));
        kept.chain(more.iter().map(|(name, value)| (*name, (*value).to_owned()))).collect::<Vec<_>>()
    };
    let cases = [
        // None of these variables alone makes the worker run a system of its own.
        (without(&["TICKOVER_TABLE"], &[]), vec!["TICKOVER_TABLE is missing"]),
        (without(&["TICKOVER_QUEUES"], &[]), vec!["TICKOVER_QUEUES is missing"]),
        (
            without(&["TICKOVER_TABLE", "TICKOVER_TIMERS"], &[("TICKOVER_LEASE", "a fortnight")]),
            vec!["TICKOVER_TABLE is missing", "TICKOVER_TIMERS is missing", "a fortnight"],
        ),
        (
            without(&["TICKOVER_QUEUES"], &[("TICKOVER_QUEUES", "letters=http://127.0.0.1:1/letters")]),
            vec!["TICKOVER_QUEUES has no URL for", "emails"],
        ),
    ];
    for (environment, problems) in cases {
        let ended = worker(&environment, &[LONG, LONG_GRACE]).ended().await.unwrap();
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        for problem in problems {
            assert!(ended.stderr.contains(problem), "{problem:?} isn't named: {}", ended.stderr);
        }
    }
}

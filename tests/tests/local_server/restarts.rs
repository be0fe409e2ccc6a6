//! A process with a data file is killed, and another one opens the file: what ran inside the first one goes on at once,
//! and what workers outside of it do goes on undisturbed. The leases here are far longer than the tests.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tickover::prelude::*;
use tickover::{Client, Millis, Registry, Worker, WorkerSettings};
use tickover_core::id::{QueueName, TaskId};
use tickover_core::limits::Limits;
use tickover_core::task::Status;
use tickover_embedded::{Local, Storage, Ticks};
use tickover_service::Service;
use tickover_service::claim::ClaimRequest;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const HOUR: Millis = Millis::from_secs(3_600);
/// A test that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(1);

/// The steps of the first process never end.
#[derive(Clone, Default)]
struct Begun {
    steps: Arc<AtomicUsize>,
    ends: bool,
}

impl Begun {
    async fn is_up_to(&self, steps: usize) {
        while self.steps.load(Ordering::SeqCst) < steps {
            tokio::task::yield_now().await;
        }
    }
}

async fn work(begun: &Begun, n: u32) -> u32 {
    begun.steps.fetch_add(1, Ordering::SeqCst);
    if !begun.ends {
        std::future::pending::<()>().await;
    }
    n
}

#[tickover::step]
async fn near(#[state] begun: &Begun, n: u32) -> Result<u32> {
    Ok(work(begun, n).await)
}

#[tickover::step(remote)]
async fn far(#[state] begun: &Begun, n: u32) -> Result<u32> {
    Ok(work(begun, n).await)
}

#[tickover::workflow]
async fn goes_near(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.step(near(n)).await?)
}

#[tickover::workflow]
async fn goes_far(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.step(far(n)).await?)
}

/// A process: all of it ends at once.
struct Life {
    runtime: Runtime,
    service: Service,
    begun: Begun,
}

impl Life {
    fn begin(data: &Path, ends: bool) -> Self {
        let runtime = Runtime::new().unwrap();
        let begun = Begun { ends, ..Begun::default() };
        let storage = Storage::File(data.to_owned());
        let state = begun.clone();
        let service = runtime.block_on(async move {
            // What the process before had open is closed in the background.
            let local = loop {
                match Local::open(&storage, Limits::default()).await {
                    Ok(local) => break local,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            let service = local.service().clone();
            let registry = Registry::new().with((goes_near, goes_far)).with_step::<far>().with_state(state);
            let settings = WorkerSettings { lease: HOUR, ..WorkerSettings::default() };
            let worker = Worker::new(service.clone(), registry, settings).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tokio::spawn(local.serve(listener, Ticks::default(), std::future::pending()));
            tokio::spawn(async move { worker.run(std::future::pending()).await });
            service
        });
        Self { runtime, service, begun }
    }

    fn client(&self) -> Client {
        Client::from(self.service.clone())
    }

    fn kill(self) {
        let Self { runtime, service, .. } = self;
        drop(service);
        runtime.shutdown_background();
    }
}

#[test]
fn what_ran_inside_a_killed_process_goes_on_at_once_and_what_runs_outside_keeps_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (queue, id) = (QueueName::parse("outside").unwrap(), TaskId::parse("outside").unwrap());
    let first = Life::begin(&data, false);
    let token = first.runtime.block_on(async {
        let client = first.client();
        client.start(&goes_near, 1).id("near").await.unwrap();
        client.start(&goes_far, 2).id("far").await.unwrap();
        client.task::<()>("k", ()).queue("outside").id("outside").await.unwrap();
        let wait = Millis::from_secs(20);
        let request = ClaimRequest { worker: None, max: 1, lease: HOUR, wait, provides: vec![] };
        let claimed = first.service.claim(&queue, &request).await.unwrap();
        tokio::time::timeout(LIMIT, first.begun.is_up_to(2)).await.unwrap();
        claimed[0].token.clone()
    });
    first.kill();
    let second = Life::begin(&data, true);
    second.runtime.block_on(async {
        let client = second.client();
        let both = async {
            let near = client.handle::<u32>("near").unwrap().result().await.unwrap();
            let far = client.handle::<u32>("far").unwrap().result().await.unwrap();
            (near, far)
        };
        assert_eq!(tokio::time::timeout(LIMIT, both).await.unwrap(), (1, 2));
        let outside = second.service.describe(&id).await.unwrap().task;
        assert_eq!((outside.status(), outside.losses), (Status::Running, 0));
        second.service.complete(&id, &token, None).await.unwrap();
    });
    second.kill();
}

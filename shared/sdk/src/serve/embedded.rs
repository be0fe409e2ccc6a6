//! A whole system in one process: storage, queues, HTTP interface, tick and worker.

use std::path::PathBuf;

use futures::future::join;
use tickover_core::limits::Limits;
use tickover_embedded::{HostName, HostNameError, Local, Storage, Ticks};
use tickover_service::config::ProcessEnvironment;
use tickover_service::stop::stop_requested;
use tickover_service::telemetry::{self, LogFormat};
use tokio::net::TcpListener;

use super::ServeError;
use crate::registry::Registry;
use crate::worker::{Worker, WorkerSettings};

/// The default address, the same as for `tickover dev`.
const LISTEN: &str = "127.0.0.1:7070";

/// Runs until the process is asked to stop.
pub(super) async fn run(
    registry: Registry,
    settings: WorkerSettings,
    surroundings: ProcessEnvironment,
) -> Result<(), ServeError> {
    let directives = surroundings.log.as_deref().unwrap_or("info");
    let filter = telemetry::filter(directives).map_err(|error| ServeError::Environment {
        problem: format!("TICKOVER_LOG must be log directives such as \"info\", not {directives:?}: {error}"),
    })?;
    telemetry::init(filter, LogFormat::Text);
    let endpoint = surroundings.endpoint.clone();
    let system = System::open(registry, settings, surroundings).await?;
    let stop = stop_requested();
    if let Ok(at) = system.listener.local_addr() {
        let own = format!("http://{at}");
        tracing::info!("listening on {own}");
        if let Some(endpoint) = endpoint.filter(|endpoint| endpoint.trim_end_matches('/') != own) {
            // One who expects a worker of that system would look for its work there.
            tracing::warn!(
                "this program is a system of its own, because TICKOVER_LISTEN or TICKOVER_DATA is set, and no worker of {endpoint} (TICKOVER_ENDPOINT)"
            );
        }
    }
    system.work(stop).await
}

/// The local system, its HTTP listener and its worker.
struct System {
    local: Local,
    listener: TcpListener,
    worker: Worker,
}

impl System {
    async fn open(
        registry: Registry,
        settings: WorkerSettings,
        surroundings: ProcessEnvironment,
    ) -> Result<Self, ServeError> {
        let listen = surroundings.listen.unwrap_or_else(|| LISTEN.to_owned());
        let listener = TcpListener::bind(&listen).await.map_err(|error| ServeError::Environment {
            problem: format!("can't listen on {listen} (TICKOVER_LISTEN): {error}"),
        })?;
        let storage = surroundings.data.map_or(Storage::Memory, |path| Storage::File(PathBuf::from(path)));
        let limits = Limits { carry_trace: surroundings.carry_trace, ..Limits::default() };
        let hosts: Result<Vec<HostName>, HostNameError> =
            surroundings.allow_hosts.iter().map(|host| host.parse()).collect();
        let hosts = hosts.map_err(|error| ServeError::Environment {
            problem: format!("allow_host, or TICKOVER_ALLOW_HOST: {error}"),
        })?;
        let local = Local::open(&storage, limits).await.map_err(|error| system(&error))?.allow_hosts(hosts);
        let listening = listener.local_addr().map_err(|error| system(&error))?;
        let local = local.callbacks_at(surroundings.callback_url.as_deref(), listening);
        let worker = Worker::new(local.service().clone(), registry, settings)?;
        Ok(Self { local, listener, worker })
    }

    async fn work(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { local, listener, worker } = self;
        let (stopping, mut stopped) = tokio::sync::watch::channel(false);
        let finished = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
        // Requests are answered until the worker has finished.
        let work = async {
            worker.announce().await;
            worker.run(stop).await;
            stopping.send_replace(true);
        };
        let (served, ()) = join(local.serve(listener, Ticks::default(), finished), work).await;
        served.map_err(|error| system(&error))
    }
}

fn system(error: &dyn std::error::Error) -> ServeError {
    let mut problem = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        problem = format!("{problem}: {cause}");
        source = cause.source();
    }
    ServeError::System { problem }
}

#[cfg(test)]
mod tests {
    use tickover_core::duration::Millis;
    use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
    use tickover_core::payload::Json;
    use tickover_service::executions::StartRequest;

    use super::*;
    use crate as tickover;
    use crate::prelude::*;

    #[tickover::step]
    async fn shout(name: String) -> Result<String> {
        Ok(name.to_uppercase())
    }

    #[tickover::workflow("greeting", queue = "parlour")]
    async fn greeting(ctx: Ctx, name: String) -> Result<String> {
        ctx.sleep("breath", "20ms").await?;
        let here = ctx.step(shout(name.clone())).await?;
        let there = ctx.step(shout(name).named("there").remote()).await?;
        Ok(format!("{here}, {there}"))
    }

    static LINK: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

    #[tickover::workflow("approval", queue = "parlour")]
    async fn approval(ctx: Ctx, (): ()) -> Result<bool> {
        let callback = ctx.callback("approval", within("3d")).await?;
        *LINK.lock().unwrap() = callback.url().map(str::to_owned);
        Ok(callback.result::<bool>().await?)
    }

    /// The status of the answer to a post.
    async fn posted(url: &str, body: &str) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        let head = format!("POST /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        let kind = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(format!("{head}{kind}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_local_system_gives_callbacks_an_address_that_works_without_configuration() {
        let listen = Some("127.0.0.1:0".to_owned());
        let surroundings = ProcessEnvironment { listen, ..ProcessEnvironment::default() };
        let registry = Registry::new().with(approval);
        let system = System::open(registry, WorkerSettings::default(), surroundings).await.unwrap();
        let service = system.local.service().clone();
        let id = ExecutionId::parse("asked").unwrap();
        let mut statuses = vec![];
        let ended = async {
            let queue = QueueName::parse("parlour").unwrap();
            let request = StartRequest::new(WorkflowName::parse("approval").unwrap(), queue);
            service.start(StartRequest { id: Some(id.clone()), ..request }).await.unwrap();
            let link = async {
                loop {
                    if let Some(link) = LINK.lock().unwrap().clone() {
                        return link;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let link = tokio::time::timeout(std::time::Duration::from_secs(20), link).await.unwrap();
            for _ in 0..2 {
                statuses.push(posted(&format!("{link}/complete"), r#"{"output": true}"#).await);
            }
            service.wait_for_execution(&id, Millis::from_secs(20)).await.unwrap();
        };
        Box::pin(system.work(ended)).await.unwrap();
        assert_eq!(statuses, ["200", "404"]);
        let described = service.execution(&id).await.unwrap().unwrap();
        assert_eq!(described.output.unwrap().as_str(), "true");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_process_of_its_own_is_a_whole_system() {
        let registry = Registry::new().with(greeting).with_step::<shout>();
        let listen = Some("127.0.0.1:0".to_owned());
        let surroundings = ProcessEnvironment { listen, ..ProcessEnvironment::default() };
        let system = System::open(registry, WorkerSettings::default(), surroundings).await.unwrap();
        let service = system.local.service().clone();
        // The caller doesn't know the workflow's queue.
        let mut request = StartRequest::new(
            WorkflowName::parse("greeting").unwrap(),
            QueueName::parse(tickover::DEFAULT_QUEUE).unwrap(),
        );
        request.any_queue = true;
        request.id = ExecutionId::parse("hello").ok();
        request.input = Json::parse(r#""ada""#);
        let id = ExecutionId::parse("hello").unwrap();
        let mut output = None;
        let ended = async {
            let announced = async {
                while service.route_of(&request.workflow).await.is_none() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(std::time::Duration::from_secs(20), announced).await.unwrap();
            service.start(request).await.unwrap();
            let described = service.wait_for_execution(&id, Millis::from_secs(20)).await.unwrap();
            output = described.and_then(|described| described.output);
        };
        Box::pin(system.work(ended)).await.unwrap();
        assert_eq!(output.unwrap().as_str(), r#""ADA, ADA""#);
    }
}

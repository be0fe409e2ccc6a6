//! `tickover`: the whole system on a laptop, any program as a worker, and the calls of operators.
//!
//! All commands except `dev`, `demo`, `data` and `new` call over HTTP only, so they work with a deployed endpoint and with
//! the local server. Calls to a deployment on AWS are signed, with the feature `aws`. With that feature, `work --direct` uses
//! a deployment's table and queues instead of HTTP.
//! Results go to standard output, messages to standard error, both through [`show`], which escapes what others wrote. The exit status is 0, 1 after an error, 2 after wrong
//! usage, and 130 if a second Ctrl-C interrupted the work.

mod argument;
mod callback;
mod callers;
mod cancel;
mod cost;
mod cron;
mod dashboard;
mod data;
mod demo;
mod describe;
mod dev;
mod event;
mod execution;
mod explain;
mod flow;
mod history;
mod kind;
mod limits;
mod list;
mod new;
mod operation;
mod overview;
mod page;
mod policy;
mod queue;
mod retry;
mod show;
mod start;
mod system;
mod task;
mod visible;
mod work;
mod workers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tickover_service::telemetry::{self, LogFormat};

/// The exit status after wrong usage, as clap has it.
const WRONG_USAGE: u8 = 2;
const ABOUT: &str = "Durable tasks on Lambda, DynamoDB and SQS";

/// The command line.
#[derive(Parser, Debug)]
#[command(name = "tickover", version, propagate_version = true, about = ABOUT, long_about = None)]
struct Cli {
    #[command(flatten)]
    system: system::SystemArgs,
    /// What to log to standard error: `warn`, `info`, or directives such as `tickover=debug`
    #[arg(long, global = true, default_value = "warn,aws_config=error", value_name = "DIRECTIVES", value_parser = telemetry::filter)]
    log: telemetry::Targets,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
#[expect(clippy::doc_markdown, reason = "these are the texts of --help, where back-quotes would show")]
enum Command {
    /// Make a project of your own: a workflow, its tests and a pipeline
    New(new::NewArgs),
    /// Run the whole system in this process, as a server for development
    Dev(dev::DevArgs),
    /// Show a system in the browser: serve the dashboard on this machine, and pass its calls on
    Dashboard(dashboard::DashboardArgs),
    /// Show the system at work: tasks, retries, a killed worker and a deadline, in seconds
    Demo(demo::DemoArgs),
    /// Make any program a worker: run a command for each task of a queue
    ///
    /// The command gets the task's input as JSON on its standard input. Its environment has TICKOVER_TASK_ID,
    /// TICKOVER_IDEMPOTENCY_KEY, TICKOVER_ATTEMPT, TICKOVER_DEADLINE_AT (if the attempt has a deadline), TICKOVER_KIND,
    /// TICKOVER_QUEUE and TICKOVER_ENDPOINT (with --direct, TICKOVER_STACK instead). Its standard output is the result:
    /// a single JSON value as it is, any other text as a string. An exit status other than 0 is a failed attempt,
    /// reported with the end of standard error. When the deadline passes, the lease is lost or the task is cancelled,
    /// the command gets SIGTERM and, after the grace period, SIGKILL. After the first Ctrl-C or SIGTERM the worker
    /// finishes its running tasks and claims no new ones; after the second it ends the commands and releases the tasks.
    Work(work::WorkArgs),
    /// Ends what a killed worker leaves behind: see `work::guard`
    #[command(hide = true)]
    GuardCommands,
    /// Schedule a task
    Task(Box<task::TaskArgs>),
    /// Start an execution of a workflow and optionally wait for its result
    Start(Box<start::StartArgs>),
    /// Send an event to an execution
    Event(event::EventArgs),
    /// Show, list, explain, cancel, pause and rerun executions, and other calls on them
    #[command(subcommand)]
    Execution(execution::ExecutionCommand),
    /// Show a task or an execution with all its instants
    Describe(describe::DescribeArgs),
    /// List tasks
    List(list::ListArgs),
    /// Cancel a task
    Cancel(cancel::CancelArgs),
    /// Retry a task that ended without a result
    Retry(retry::RetryArgs),
    /// List, show, pause and resume queues
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// See who asks for the work of each queue
    #[command(subcommand)]
    Workers(workers::WorkersCommand),
    /// Show how much waits, runs, is late, needs somebody and has failed
    Overview(overview::OverviewArgs),
    /// Show what has failed, in groups
    Failures(overview::FailuresArgs),
    /// Show what a local server's queues did in the last day, by the hour
    History(history::HistoryArgs),
    /// Set, show, list and delete the defaults of a kind of task
    #[command(subcommand)]
    Kind(kind::KindCommand),
    /// See and set how many tasks of a key run at once
    #[command(subcommand)]
    Limits(limits::LimitsCommand),
    /// Create, list, show, pause, resume, trigger and delete crons
    #[command(subcommand)]
    Cron(cron::CronCommand),
    /// End a wait or an attempt with the token of its callback
    #[command(subcommand)]
    Callback(callback::CallbackCommand),
    /// Do the same with many executions or tasks; list, show and stop such operations
    #[command(subcommand)]
    Operation(operation::OperationCommand),
    /// Check, compact and copy the data file of a local server
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Explain why a task or an execution is in its state, what happens next, and when
    Explain(explain::ExplainArgs),
    /// Estimate what a workload costs on AWS each month
    Cost(Box<cost::CostArgs>),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    telemetry::init(cli.log.clone(), LogFormat::Text);
    match Box::pin(run(cli)).await {
        Ok(code) => code,
        Err(error) => {
            show::say(&format!("error: {error:#}"));
            if let Some(advice) = system::advice(&error) {
                show::say(&format!("help: {advice}"));
            }
            if error.is::<argument::Usage>() { WRONG_USAGE.into() } else { ExitCode::FAILURE }
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let system = cli.system;
    match cli.command {
        Command::Cost(args) => cost::run(&args)?,
        Command::New(args) => new::run(args)?,
        Command::Dev(args) => dev::run(args).await?,
        Command::Dashboard(args) => Box::pin(dashboard::run(args, system)).await?,
        Command::Demo(args) => demo::run(args).await?,
        Command::Work(args) => {
            let (client, place) = system.for_worker(args.direct).await?;
            return work::run(args, client, place).await;
        }
        Command::GuardCommands => work::guard::run(),
        Command::Task(args) => task::run(*args, &system.client().await?).await?,
        Command::Start(args) => return start::run(*args, &system.client().await?).await,
        Command::Event(args) => event::run(args, &system.client().await?).await?,
        Command::Execution(command) => execution::run(command, &system.client().await?).await?,
        Command::Describe(args) => describe::run(args, &system.client().await?).await?,
        Command::List(args) => list::run(args, &system.client().await?).await?,
        Command::Cancel(args) => cancel::run(args, &system.client().await?).await?,
        Command::Limits(command) => limits::run(command, &system.client().await?).await?,
        Command::Queue(command) => queue::run(command, &system.client().await?).await?,
        Command::Workers(command) => workers::run(command, &system.client().await?).await?,
        Command::Overview(args) => overview::run(args, &system.client().await?).await?,
        Command::Failures(args) => overview::failures(args, &system.client().await?).await?,
        Command::History(args) => Box::pin(history::run(args, system)).await?,
        Command::Kind(command) => kind::run(command, &system.client().await?).await?,
        Command::Cron(command) => cron::run(command, &system.client().await?).await?,
        Command::Operation(command) => operation::run(command, &system.client().await?).await?,
        Command::Callback(command) => callback::run(command, &system.client().await?).await?,
        Command::Data(command) => data::run(&command)?,
        Command::Retry(args) => retry::run(args, &system.client().await?).await?,
        Command::Explain(args) => explain::run(args, &system.client().await?).await?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn no_command_or_option_has_a_second_name() {
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            assert_eq!(command.get_all_aliases().next(), None, "{}", command.get_name());
            for option in command.get_arguments() {
                assert_eq!(option.get_all_aliases().unwrap_or_default(), [""; 0], "{}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}

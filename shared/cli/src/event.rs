//! `tickover event`: sends an event to an execution.

use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::id::{EventId, EventName, ExecutionId};
use tickover_wire::request::EventRequest;

use crate::argument::{self, name};
use crate::show::{count, print};

/// Options of `tickover event`.
#[derive(clap::Args, Debug)]
pub(crate) struct EventArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// The event's name
    #[arg(value_parser = name(EventName::parse))]
    name: EventName,
    /// The event's payload as JSON; `-` reads it from standard input
    #[arg(value_name = "PAYLOAD")]
    payload: Option<String>,
    /// The event's own id; repeating the call with an id is idempotent
    #[arg(long, value_parser = name(EventId::parse))]
    event_id: Option<EventId>,
    /// Waits at most so long for the answer of the execution's code, up to 20s, and prints it
    #[arg(long, value_name = "TIME", value_parser = argument::duration_or_zero)]
    answer: Option<Millis>,
}

/// Sends the event and prints how many are pending, or the answer.
pub(crate) async fn run(args: EventArgs, client: &Client) -> anyhow::Result<()> {
    let request = EventRequest {
        payload: argument::json(args.payload.as_deref(), "the payload")?,
        event_id: args.event_id,
        traceparent: None,
    };
    if let Some(wait) = args.answer {
        let sent = client.api().request(&args.id, &args.name, &request, wait).await?;
        return match (sent.answer, sent.event_id) {
            (Some(answer), _) => print(&format!("{}\n", answer.as_str())),
            (None, id) => {
                let id = id.map_or_else(String::new, |id| format!(" with --event-id {id}"));
                anyhow::bail!("{} has no answer yet: repeat the command{id}", args.name)
            }
        };
    }
    let sent = client.api().send_event(&args.id, &args.name, &request).await?;
    let what = if sent.is_duplicate() { "had been sent before" } else { "is sent" };
    let pending = count(sent.pending as usize, "event");
    print(&format!("{} {what}: {pending} waiting for {}\n", args.name, args.id))
}

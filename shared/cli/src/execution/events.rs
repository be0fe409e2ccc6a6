//! `tickover event`: offers events, and shows or throws away those that wait.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tickover_core::id::{EventId, EventName, ExecutionId};

use super::answer::{EventSent, Events, EventsCleared};
use super::show;
use crate::client::{CallError, Client};
use crate::schedule::{name, read_json};
use crate::show::{count, print, print_json};

/// Options of `tickover event`.
#[derive(clap::Args, Debug)]
pub(crate) struct EventArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// The event's name
    #[arg(value_parser = name(EventName::parse))]
    name: EventName,
    /// What comes with it, as JSON; `-` reads it from standard input
    #[arg(value_name = "PAYLOAD")]
    payload: Option<String>,
    /// The event's own id, which makes repeating the call harmless
    #[arg(long, value_parser = name(EventId::parse))]
    event_id: Option<EventId>,
}

/// Options of `tickover execution events`.
#[derive(clap::Args, Debug)]
pub(crate) struct EventsArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// Print each event as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution drain`.
#[derive(clap::Args, Debug)]
pub(crate) struct ClearArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// The events' name
    #[arg(value_parser = name(EventName::parse))]
    name: EventName,
}

#[derive(Serialize)]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<&'a EventId>,
}

/// Offers an event.
pub(crate) async fn send_event(args: EventArgs, client: &Client) -> anyhow::Result<()> {
    let payload = args.payload.as_deref().map(|text| read_json(text, "the payload")).transpose()?;
    let body = to_raw_value(&Request { payload, event_id: args.event_id.as_ref() })?;
    let path = ["executions", args.id.as_str(), "events", args.name.as_str()];
    let offered: EventSent = client.call(Method::POST, &path, &[], Some(&body)).await?;
    let what = if offered.duplicate { "had been offered before" } else { "is offered" };
    let pending = count(offered.pending as usize, "event");
    print(&format!("{} {what}: {pending} waiting for {}\n", args.name, args.id))
}

/// How many events of each name wait.
pub(super) async fn counts(id: &str, client: &Client) -> Result<BTreeMap<String, u32>, CallError> {
    let path = ["executions", id, "events"];
    let page: Events = client.call(Method::GET, &path, &[("limit", "1".to_owned())], None).await?;
    Ok(page.counts)
}

/// Shows the events that wait.
pub(super) async fn list(args: EventsArgs, client: &Client) -> anyhow::Result<()> {
    let path = ["executions", args.id.as_str(), "events"];
    let (mut found, mut parameters) = (Vec::new(), vec![]);
    loop {
        let page: Events = client.call(Method::GET, &path, &parameters, None).await?;
        found.extend(page.events);
        let Some(cursor) = page.cursor else { break };
        parameters = vec![("cursor", cursor)];
    }
    if args.json {
        return found.iter().try_for_each(|event| print_json(event.get()));
    }
    let events: Result<Vec<_>, _> = found.iter().map(|event| serde_json::from_str(event.get())).collect();
    print(&show::events(&events?))
}

/// Throws events away.
pub(super) async fn clear_events(args: ClearArgs, client: &Client) -> anyhow::Result<()> {
    let path = ["executions", args.id.as_str(), "events", args.name.as_str()];
    let gone: EventsCleared = client.call(Method::DELETE, &path, &[], None).await?;
    let events = count(gone.drained as usize, "event");
    print(&format!("{events} named {} thrown away\n", args.name))
}

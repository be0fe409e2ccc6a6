//! The SDK's own engine in a simulation: the example workflows as users read them, and the outside world that their
//! steps call.

#[path = "../../../shared/sdk/examples/flows/fan_out.rs"]
mod fan_out;
#[path = "../../../shared/sdk/examples/flows/import.rs"]
mod import;
#[path = "../../../shared/sdk/examples/flows/order.rs"]
mod order;
#[path = "../../../shared/sdk/examples/flows/reminder.rs"]
mod reminder;
#[path = "../../../shared/sdk/examples/flows/trip.rs"]
mod trip;

mod archive;
mod library;
mod mail;
pub mod outside;
pub mod story;

use tickover::Registry;

/// The queues that the workflows and their remote steps name.
pub const FLOW_QUEUES: [&str; 2] = ["orders", tickover::DEFAULT_QUEUE];

/// The workflows and steps of every worker.
pub fn registry() -> Registry {
    Registry::new()
        .with((order::fulfil, reminder::survey, trip::book, fan_out::gallery))
        .with((import::import, import::import_page, library::library, mail::mail, archive::archive))
        .with_step::<order::print_label>()
        .with_step::<library::shelve>()
}

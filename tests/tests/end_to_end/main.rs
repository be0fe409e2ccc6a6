//! Tickover as it is deployed: a core, the orders worker and two queues, the functions invoked as users and AWS invoke
//! them, and a real schedule for the tick. `cargo xtask e2e` deploys them into an emulator, or into an account with
//! `--account`, and deletes them afterwards.
//!
//! All tests share the system. Each has its own ids, and only one uses the queue `emails`.

#[cfg(test)]
mod account;
#[cfg(test)]
mod deployment;
#[cfg(test)]
mod http;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod project;
#[cfg(test)]
mod system;
#[cfg(test)]
mod target;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod time;
#[cfg(test)]
mod workflow;

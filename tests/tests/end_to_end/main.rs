//! Tickover as it is deployed: a core, the orders worker and two queues in an emulator, the functions invoked as users
//! and AWS invoke them, and a real schedule for the tick. `cargo xtask e2e` deploys them, and deletes them afterwards.
//!
//! All tests share the system. Each has its own ids, and only one uses the queue `emails`.

#[cfg(test)]
mod deployment;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod system;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod time;
#[cfg(test)]
mod workflow;

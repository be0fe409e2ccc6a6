//! Tickover as it is deployed: the template in an emulator, its functions invoked as users and AWS invoke them, and a
//! real schedule for the tick. `cargo xtask e2e` deploys it, and deletes it afterwards.
//!
//! All tests share the stack. Each has its own ids, and only one uses the queue `emails`.

#[cfg(test)]
mod deployment;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod stack;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod time;
#[cfg(test)]
mod workflow;

//! Tickover as it is deployed: the template in an emulator, its functions called as users and AWS call them, and a
//! schedule that really ticks. `cargo xtask e2e` deploys it, and deletes it afterwards.
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

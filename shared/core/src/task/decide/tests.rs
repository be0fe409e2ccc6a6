//! The rules of tasks, tested as scenarios: a plan is scheduled, time passes, workers and operators call.

mod bursts;
mod dispatch;
pub(crate) mod fixture;
mod leases;
mod life;
mod lines;
mod lost;
mod operators;
mod paced;
mod parents;
mod parked;
mod random;
mod retries;
mod size;
mod timeouts;
mod timers;

//! The rules of a task's life, told as scenes: a plan is scheduled, time passes, workers and operators act.

mod dispatch;
pub(crate) mod fixture;
mod leases;
mod life;
mod lost;
mod operators;
mod parents;
mod parked;
mod random;
mod retries;
mod size;
mod timeouts;
mod timers;

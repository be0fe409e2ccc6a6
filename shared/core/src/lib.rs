//! The rules of Tickover: tasks, executions and crons, their state transitions, and the instants at which they
//! happen.
//!
//! This crate is pure: it makes every decision and carries none out. It has no clock, no randomness, no I/O and no
//! runtime. The time, random ids and limits are arguments. The caller of [`task::decide()`] carries out the
//! decision, with each write conditional on the record that was decided on.

#[cfg(test)]
mod arrows;
pub mod batch;
pub mod by;
pub mod command;
pub mod cron;
pub mod decision;
pub mod due;
mod due_slot;
pub mod duration;
pub mod error;
pub mod execution;
pub mod failure;
pub mod flow;
pub mod gate;
pub mod id;
pub mod kind;
pub mod lane;
pub mod limits;
pub mod natural;
pub mod operation;
pub mod parent;
pub mod parked;
pub mod payload;
pub mod policy;
pub mod queue;
pub mod record;
pub mod reported;
pub mod retry;
pub mod size;
pub mod task;
pub mod tick;
pub mod time;
pub mod timeout;
pub mod timer;
pub mod trace;

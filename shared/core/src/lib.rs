//! The rules of Tickover: what a task is, what may happen to it, and when.
//!
//! This crate is pure. It owns every decision and performs none: no clock, no randomness, no input or output,
//! no runtime. Time, random ids and limits are arguments. Whoever calls [`task::decide()`] carries the
//! decision out, each write conditional on the record that was decided on.

pub mod command;
pub mod cron;
pub mod decision;
pub mod due;
mod due_slot;
pub mod duration;
pub mod error;
pub mod execution;
pub mod failure;
pub mod id;
pub mod limits;
pub mod natural;
pub mod parent;
pub mod payload;
pub mod policy;
pub mod queue;
pub mod retry;
pub mod size;
pub mod task;
pub mod tick;
pub mod time;
pub mod timeout;
pub mod timer;
pub mod trace;

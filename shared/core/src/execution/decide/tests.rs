//! The rules of an execution's lifecycle, tested as scenes: it is started, time passes, workers and operators act.

mod admission;
mod attempts;
mod cancellations;
mod ends;
mod events;
mod fixture;
mod hints;
mod journal;
mod lifecycle;
mod lines;
mod lost;
mod operators;
mod random;
mod run_retries;
mod size;
mod terms;
mod turns;
mod values;
mod waits;

//! The actors of a run. Each is a process that may die, freeze and restart, and none of them knows more than a real one
//! would.

mod batch;
mod client;
mod crons;
mod engine;
mod filler;
mod operations;
mod operator;
mod outsider;
mod reaper;
mod redriver;
mod ticker;
mod timers;
mod turn;
mod worker;

pub use batch::batch;
pub use client::client;
pub use engine::engine;
pub use filler::filler;
pub use operator::operator;
pub use outsider::outsider;
pub use reaper::reaper;
pub use redriver::redriver;
pub use ticker::ticker;
pub use timers::timers;
pub use worker::worker;

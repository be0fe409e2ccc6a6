//! Who takes part in a run. Each is a process that dies, freezes and comes back; none of them knows more than a
//! real one would.

mod client;
mod operator;
mod ticker;
mod timers;
mod turn;
mod worker;

pub use client::client;
pub use operator::operator;
pub use ticker::ticker;
pub use timers::timers;
pub use worker::worker;

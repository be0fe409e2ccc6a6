//! The ports without a network: for tests, the simulation and the queue of a local server.

pub mod clock;
pub mod queue;
pub mod store;

pub use clock::ManualClock;
pub use queue::{Backlog, Choice, MemoryQueue, MessageLimits, Queues, Ready};
pub use store::MemoryStore;

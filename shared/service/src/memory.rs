//! The ports without a network: for tests, simulation and the local server's queue.

pub mod clock;
pub mod queue;
pub mod store;

pub use clock::ManualClock;
pub use queue::{MemoryQueue, Mortality, Queues};
pub use store::MemoryStore;

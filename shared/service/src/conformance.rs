//! What every store and every queue must do, as cases that each adapter's tests run on itself.

pub mod queue;
pub mod store;

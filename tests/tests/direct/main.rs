//! Workers outside of Lambda that find a deployment's table and queues by its name: `tickover work --direct`, and a
//! program in Rust with `TICKOVER_SYSTEM`. Real processes, against tables, queues and parameters over the network.
#![expect(clippy::expect_used, reason = "a test's helpers may fail it")]

mod bad_input;
mod expired;
mod scene;
mod work;

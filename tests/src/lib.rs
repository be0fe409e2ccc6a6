//! What our tests have in common: real processes, an AWS emulator, and a service in a time of its own.

pub mod dynamodb;
pub mod emulator;
pub mod faults;
pub mod http;
pub mod keys;
pub mod meter;
pub mod model;
pub mod moody;
pub mod process;
pub mod runtime_api;
pub mod scene;
pub mod sim;

// The example workflows that run in the simulation look for their outside world here.
use sim::flows::outside;

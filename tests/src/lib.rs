//! What all tests share: real processes, an AWS emulator, and a service in virtual time.

pub mod class_queue;
pub mod dynamodb;
pub mod emulator;
pub mod execution_bill;
pub mod faults;
pub mod faulty_queue;
pub mod http;
pub mod keys;
pub mod meter;
pub mod process;
pub mod recorder;
pub mod runtime_api;
pub mod scene;
pub mod seconds_queue;

//! The dashboard in a real browser. `cargo xtask browser` installs what is missing, and runs these tests.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests"
)]

mod calls;
mod deployment;
mod driver;
mod flows;
mod forms;
mod hands;
mod jobs;
mod keyboard;
mod lists;
mod live;
mod middle;
mod picture;
mod proxy;
mod safety;
mod server;
// The same check as in the tests of the tool.
#[path = "../../../shared/cli/tests/aws/sigv4.rs"]
mod sigv4;
mod site;
mod steer;
mod timeline;
mod trouble;
mod truth;
mod views;

/// The keys of the caller of a deployment, and its region.
const KEY_ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const REGION: &str = "eu-west-1";

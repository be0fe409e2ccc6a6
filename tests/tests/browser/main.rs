//! The dashboard in a real browser. `cargo xtask browser` installs what is missing, and runs these tests.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests"
)]

mod calls;
mod driver;
mod flows;
mod forms;
mod keyboard;
mod lists;
mod live;
mod picture;
mod proxy;
mod safety;
mod site;
mod timeline;
mod trouble;
mod views;

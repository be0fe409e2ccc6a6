//! The function `worker`: turns and remote steps of the example workflow, from batches of their queue's messages.
//!
//! A function of yours has its own workflows in place of [`workflow`], and needs nothing else.

mod workflow;

use workflow::{fulfil, print_label};

#[tokio::main]
async fn main() {
    // A start that fails is logged and told to Lambda, and the process ends with status 1.
    tickover::serve((fulfil,)).step::<print_label>().await;
}

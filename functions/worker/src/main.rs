//! The function `worker`: runs turns and remote steps of the example workflow for batches of its queue's messages.
//!
//! Your own function has its workflows in place of [`workflow`] and needs nothing else.

mod workflow;

use workflow::{fulfil, print_label};

#[tokio::main]
async fn main() {
    // If the start fails, the error is logged and reported to Lambda, and the process ends with status 1.
    tickover::serve((fulfil,)).step::<print_label>().await;
}

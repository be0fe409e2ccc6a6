//! The worker. On your machine it is the whole system in one process. In Lambda it is a function that handles the
//! messages of its queue.

use {{crate}}::{fulfil, print_label};

#[tokio::main]
async fn main() {
    tickover::serve(fulfil).step::<print_label>().await;
}

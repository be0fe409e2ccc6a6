//! The worker: on a laptop the whole system in one process, in Lambda a function that answers its queue's messages.

use orders::{Stock, fulfil};

#[tokio::main]
async fn main() {
    tickover::serve(fulfil).state(Stock::new([("bicycle", 3)])).await;
}

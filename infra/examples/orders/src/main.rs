//! The worker. On a laptop it is the whole system in one process. In Lambda it is a function that handles its queue's
//! messages.

use orders::{Stock, fulfil};

#[tokio::main]
async fn main() {
    tickover::serve(fulfil).state(Stock::new([("bicycle", 3)])).await;
}

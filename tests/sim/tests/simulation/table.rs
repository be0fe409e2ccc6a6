//! The two stores of a run.

use tickover_core::decision::{Condition, Write};
use tickover_core::id::Nonce;
use tickover_core::tick::TickRecord;
use tickover_service::ports::Store;
use tickover_sim::table::Table;

#[tokio::test]
#[should_panic(expected = "seed 7: memory Ok(Some(Tick(TickRecord { version: 2")]
async fn a_run_ends_where_the_stores_differ() {
    let table = Table::new(7, true);
    let record = TickRecord { version: 1, ..TickRecord::new(Nonce::from_bytes([1; Nonce::LEN])) };
    table.commit(&[Write::put(record.clone(), Condition::Follows)]).await.unwrap();
    assert_eq!((&table as &dyn Store).tick_record().await.unwrap().as_ref(), Some(&record));
    let only_here = [Write::put(TickRecord { version: 2, ..record }, Condition::Follows)];
    table.memory.commit(&only_here).await.unwrap();
    let _ = (&table as &dyn Store).tick_record().await;
}

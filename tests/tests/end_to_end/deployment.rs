//! What was deployed is what the code is written for.

use tickover_dynamodb::Table;
use tickover_tests::emulator::aws_config;

use crate::stack::Stack;

#[tokio::test]
async fn the_templates_table_is_the_one_that_the_store_would_make() {
    let stack = Stack::deployed().await;
    let client = aws_sdk_dynamodb::Client::new(&aws_config().await);
    // It changes nothing about a table that is as it should be, and refuses any other.
    Table::new(&stack.name).create(&client).await.unwrap();
}

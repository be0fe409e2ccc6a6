//! The deployment has the settings that the code relies on.

use tickover_dynamodb::Table;
use tickover_tests::emulator::aws_config;

use crate::system::System;

#[tokio::test]
async fn the_templates_table_is_the_one_that_the_store_would_make() {
    let system = System::deployed().await;
    let client = aws_sdk_dynamodb::Client::new(&aws_config().await);
    // The call changes nothing about a table that is right, and refuses any other.
    Table::new(&system.name).create(&client).await.unwrap();
}

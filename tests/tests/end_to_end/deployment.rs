//! The deployment has the settings that the code relies on.

use tickover_dynamodb::Table;

use crate::system::System;
use crate::target::Target;

#[tokio::test]
async fn the_templates_table_is_the_one_that_the_store_would_make() {
    let system = System::deployed().await;
    let client = aws_sdk_dynamodb::Client::new(&Target::here().config().await);
    // The call changes nothing about a table that is right, and refuses any other.
    Table::new(&system.name).create(&client).await.unwrap();
}

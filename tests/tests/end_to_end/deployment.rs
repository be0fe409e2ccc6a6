//! The deployment has the settings that the code relies on.

use tickover_dynamodb::Table;
use tickover_tests::emulator::aws_config;

use crate::stack::Stack;

/// Without this setting of each function, work that continues by messages stops after 16 of them.
#[tokio::test]
async fn every_deployed_function_allows_message_loops() {
    let stack = Stack::deployed().await;
    let template = stack.processed_template().await;
    let resources = template["Resources"].as_object().unwrap().values();
    let functions = resources.filter(|resource| resource["Type"] == "AWS::Lambda::Function");
    let says = |function: &serde_json::Value| {
        let name = function["Properties"]["FunctionName"].to_string();
        (name, function["Properties"]["RecursiveLoop"] == "Allow")
    };
    let functions: Vec<_> = functions.map(says).collect();
    assert_eq!(functions.len(), 6, "{functions:?}");
    assert!(functions.iter().all(|(_, is_allowed)| *is_allowed), "{functions:?}");
}

#[tokio::test]
async fn the_templates_table_is_the_one_that_the_store_would_make() {
    let stack = Stack::deployed().await;
    let client = aws_sdk_dynamodb::Client::new(&aws_config().await);
    // The call changes nothing about a table that is right, and refuses any other.
    Table::new(&stack.name).create(&client).await.unwrap();
}

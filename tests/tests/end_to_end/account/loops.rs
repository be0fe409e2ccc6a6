//! Lambda stops a function whose messages lead back to it after about 16 invocations, unless its settings allow it.

use serde_json::json;

use super::roles::ROLES;
use crate::system::System;
use crate::target::{Check, Target, aws};
use crate::workflow::forty_steps;

#[tokio::test]
async fn lambda_lets_a_workflow_of_forty_steps_pass() {
    if !Target::here().shows(Check::Loops) {
        return;
    }
    let system = System::deployed().await;
    let calls = ROLES.iter().map(|role| {
        let name = format!("{}-{}", system.name, role.function);
        json!(["lambda", "get_function_recursion_config", {"FunctionName": name}])
    });
    for (answer, role) in aws(calls.collect()).await.iter().zip(&ROLES) {
        assert_eq!(answer["RecursiveLoop"], "Allow", "{}", role.function);
    }
    // Eighty invocations of the worker, each by a message that the one before has sent.
    forty_steps(&system, "order-loops").await;
}

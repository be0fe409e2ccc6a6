//! The worker of a new project, in a stack of its own beside the orders worker. The acceptance in an account doesn't have it.

use reqwest::Method;
use serde_json::json;

use crate::system::{SOON, System, until};
use crate::target::Target;
use crate::workflow::ended;

#[tokio::test]
async fn a_new_projects_workflow_runs_from_its_own_stack_and_queue() {
    if !Target::here().has_project() {
        return;
    }
    let system = System::deployed().await;
    let order = json!({"number": 7, "cents": 1200, "address": "1 Main Street"});
    let start = json!({"workflow": "fulfil", "id": "shop-7", "queue": "shop", "input": order});
    system.post("/v1/executions", start).await;
    until("the order to wait for its carrier", SOON, async || {
        let (_, answer) = system.call(Method::GET, "/v1/executions/shop-7", None).await;
        answer["execution"]["waits_for"].to_string().contains("shipped").then_some(())
    })
    .await;
    system.post("/v1/executions/shop-7/events/shipped", json!({"payload": "a bicycle"})).await;
    let execution = ended(&system, "shop-7", SOON).await;
    assert_eq!(execution["status"], "completed", "{execution}");
    let output = &execution["output"];
    assert_eq!((&output["label"], &output["carrier"]), (&json!("7: 1 Main Street"), &json!("a bicycle")));
}

//! HTTP events of API Gateway and of function URLs.

use serde_json::{Value, json};

use crate::deployment::{Deployment, event};

/// The body of an HTTP answer.
fn body(answer: &Value) -> Value {
    assert_eq!(answer["isBase64Encoded"], false, "{answer}");
    serde_json::from_str(answer["body"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn every_kind_of_http_event_reaches_the_routes() {
    let deployment = Deployment::new().await;
    let gateway = deployment.start("gateway").await;

    let created = gateway.invoke(event("http_api_post_task")).await.unwrap();
    assert_eq!(created["statusCode"], 201, "{created}");
    assert_eq!(created["headers"]["content-type"], "application/json", "{created}");
    assert_eq!(body(&created)["task"]["id"], "order-17");
    let again = gateway.invoke(event("http_api_post_task")).await.unwrap();
    assert_eq!(again["statusCode"], 200, "{again}");

    let by_url = gateway.invoke(event("function_url_post_task")).await.unwrap();
    assert_eq!(by_url["statusCode"], 201, "{by_url}");
    assert_eq!(body(&by_url)["task"]["id"], "order-18");

    for get in ["http_api_get_task", "http_api_stage_get_task", "rest_api_get_task"] {
        let described = gateway.invoke(event(get)).await.unwrap();
        assert_eq!(described["statusCode"], 200, "{get}: {described}");
        let task = &body(&described)["task"];
        assert_eq!(task["input"], json!({"to": "ada@example.com"}), "{get}: {task}");
    }

    let listed = gateway.invoke(event("http_api_list_tasks")).await.unwrap();
    assert_eq!(body(&listed)["tasks"].as_array().unwrap().len(), 2, "{listed}");

    // Tickover's own queues aren't listed.
    let mut queues = event("http_api_list_tasks");
    queues["rawPath"] = json!("/v1/queues");
    queues["rawQueryString"] = json!("");
    let listed = gateway.invoke(queues).await.unwrap();
    let names: Vec<_> =
        body(&listed)["queues"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["emails"], "{listed}");
    assert!(!gateway.logs().contains("ada@example.com"), "a payload is logged: {}", gateway.logs());
}

#[tokio::test]
async fn what_the_routes_refuse_is_a_problem_document() {
    let deployment = Deployment::new().await;
    let gateway = deployment.start("gateway").await;
    let mut request = event("http_api_post_task");

    request["body"] = json!(r#"{"queue":"emails"}"#);
    let refused = gateway.invoke(request.clone()).await.unwrap();
    assert_eq!(refused["statusCode"], 400, "{refused}");
    assert_eq!(refused["headers"]["content-type"], "application/problem+json", "{refused}");
    assert_eq!(body(&refused)["code"], "invalid_request");

    request["requestContext"]["http"]["method"] = json!("DELETE");
    let refused = gateway.invoke(request.clone()).await.unwrap();
    assert_eq!(refused["statusCode"], 405, "{refused}");

    request["rawPath"] = json!("/v1/nothing");
    let refused = gateway.invoke(request).await.unwrap();
    assert_eq!((&refused["statusCode"], &body(&refused)["code"]), (&json!(404), &json!("not_found")));
}

/// A route of API Gateway may be allowed to callers that aren't operators.
#[tokio::test]
async fn an_operators_call_is_taken_only_by_its_own_route() {
    let deployment = Deployment::new().await;
    let gateway = deployment.start("gateway").await;
    let put = |kind: &str, came_by: &str| {
        let mut request = event(kind);
        request["rawPath"] = json!("/v1/crons/nightly");
        request["requestContext"]["http"]["method"] = json!("PUT");
        request["requestContext"]["routeKey"] = json!(came_by);
        request["isBase64Encoded"] = json!(false);
        request["body"] = json!(r#"{"every": "1h", "task": {"queue": "emails", "kind": "sweep"}}"#);
        request
    };
    for (kind, came_by, status) in [
        ("http_api_post_task", "$default", 403),
        ("http_api_post_task", "GET /v1/{proxy+}", 403),
        ("http_api_post_task", "POST /v1/crons/{id}/pause", 403),
        ("http_api_post_task", "PUT /v1/crons/{id}", 201),
        // One permission is for all calls of a function URL.
        ("function_url_post_task", "$default", 200),
    ] {
        let answer = gateway.invoke(put(kind, came_by)).await.unwrap();
        assert_eq!(answer["statusCode"], status, "{kind} {came_by}: {answer}");
        if status == 403 {
            assert_eq!(body(&answer)["code"], "foreign_route");
        }
    }
    let scheduled = gateway.invoke(event("http_api_post_task")).await.unwrap();
    assert_eq!(scheduled["statusCode"], 201, "everybody's calls have no routes of their own: {scheduled}");
}

/// A request by this route of the HTTP API, with the token of a subject.
fn by_token(route: &str, path: &str, body: &Value) -> Value {
    let (method, _) = route.split_once(' ').unwrap_or(("POST", ""));
    let mut request = event("http_api_post_task");
    (request["rawPath"], request["rawQueryString"]) = (json!(path), json!(""));
    request["routeKey"] = json!(route);
    request["requestContext"]["routeKey"] = json!(route);
    request["requestContext"]["http"]["method"] = json!(method);
    request["requestContext"]["authorizer"] =
        json!({"jwt": {"claims": {"sub": "ada", "client_id": "console"}, "scopes": null}});
    request["headers"]["x-user"] = json!("eve");
    request["body"] = json!(body.to_string());
    request
}

#[tokio::test]
async fn an_operators_call_is_audited_with_the_subject_of_its_token_and_the_timeline_names_it() {
    let deployment = Deployment::new().await;
    let gateway = deployment.start("gateway").await;
    let start = json!({"id": "order-17", "workflow": "orders", "queue": "emails", "input": 1});
    let started = gateway.invoke(by_token("$default", "/v1/executions", &start)).await.unwrap();
    assert_eq!(started["statusCode"], 201, "{started}");
    let route = "POST /v1/executions/{id}/terminate";
    let ended =
        gateway.invoke(by_token(route, "/v1/executions/order-17/terminate", &json!({}))).await.unwrap();
    assert_eq!(ended["statusCode"], 200, "{ended}");
    let route = "GET /v1/{proxy+}";
    let shown =
        gateway.invoke(by_token(route, "/v1/executions/order-17/timeline", &json!({}))).await.unwrap();
    let entries = body(&shown)["entries"].clone();
    let by: Vec<_> = entries.as_array().unwrap().iter().filter(|one| one["by"].is_object()).collect();
    assert_eq!(by.len(), 1, "{entries}");
    assert_eq!((&by[0]["kind"], &by[0]["by"]), (&json!("terminated"), &json!({"caller": "ada"})));

    let lines: Vec<Value> =
        gateway.logs().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let audited: Vec<_> = lines.iter().filter(|line| line["target"] == "audit").collect();
    assert_eq!(audited.len(), 1, "{}", gateway.logs());
    for (field, value) in [
        ("caller", "ada"),
        ("client", "console"),
        ("call", "POST /v1/executions/{id}/terminate"),
        ("id", "order-17"),
        ("outcome", "ok"),
    ] {
        assert_eq!(audited[0][field], value, "{}", audited[0]);
    }
}

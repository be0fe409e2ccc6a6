//! Calls of a turn that nobody may make: each gets a typed problem, and changes nothing.

use serde_json::{Value, json};
use tickover_core::id::ExecutionId;
use tickover_tests::http::Caller;

const MAX: usize = 400 * 1024;

/// A system with an execution, whose turn the caller has.
struct Turn {
    caller: Caller,
    lease: String,
    record: Value,
}

impl Turn {
    async fn of(id: &str) -> Self {
        Self::by(Caller::default(), id).await
    }

    async fn by(caller: Caller, id: &str) -> Self {
        caller.ok("/v1/executions", json!({"id": id, "workflow": "w", "queue": "work", "input": 7})).await;
        let mut work = caller.ok("/v1/queues/work/work/claim", json!({"worker": "w-1"})).await;
        let mut turn = work["turns"].as_array_mut().unwrap().pop().unwrap();
        assert_eq!((&turn["input"], &turn["execution"]["id"]), (&json!(7), &json!(id)));
        let lease = turn["lease"].as_str().unwrap().to_owned();
        Self { caller, lease, record: turn["execution"].take() }
    }

    /// A write of this turn with these further fields.
    fn write(&self, fields: &Value) -> Value {
        let entries = self.record["jou"].as_array().map_or(0, Vec::len);
        let mut body = json!({
            "lease": self.lease, "seen_version": self.record["ver"], "seen_entries": entries,
        });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    }

    async fn refused(&self, path: &str, body: Value) -> (u16, String) {
        self.caller.refused(&format!("/v1/executions/e/turn{path}"), body).await
    }

    async fn version(&self) -> u64 {
        let id = ExecutionId::parse("e").unwrap();
        self.caller.scene.service.execution(&id).await.unwrap().unwrap().execution.version
    }
}

fn captured(name: &str) -> Value {
    json!({"t": 0, "c": {"n": name, "o": {"j": "1"}}})
}

#[tokio::test]
async fn a_lease_of_nobody_or_of_another_execution_is_lost() {
    let other = Turn::of("other").await;
    let turn = Turn::by(other.caller, "e").await;
    let before = turn.version().await;
    for lease in ["", "AAAA", "nonsense", &other.lease] {
        for (path, fields) in [
            ("", turn.write(&json!({"entries": [captured("a")]}))),
            ("/read", json!({"from": 0})),
            ("/start", json!({})),
            ("/cancel", json!({"steps": ["a"]})),
            ("/payload", json!({"payload": 1})),
            ("/callback", json!({"event": "x", "expires_at": "2030-01-01T00:00:00Z"})),
        ] {
            let mut body = fields;
            body["lease"] = lease.into();
            let (status, code) = turn.refused(path, body).await;
            let expected = if lease.is_empty() { (400, "invalid_request") } else { (409, "lease_lost") };
            assert_eq!((status, code.as_str()), expected, "{path} {lease}");
        }
    }
    let body = turn.write(&json!({}));
    let unknown = turn.caller.refused("/v1/executions/nobody/turn", body).await;
    assert_eq!(unknown, (404, "not_found".to_owned()));
    assert_eq!(turn.version().await, before);
}

#[tokio::test]
async fn entries_that_a_turn_does_not_write_are_refused() {
    let turn = Turn::of("e").await;
    let before = turn.version().await;
    let long = "x".repeat(20_000);
    for (entry, code) in [
        (json!({"t": 0, "e": {"n": "go"}}), "invalid_request"),
        (json!({"t": 0, "o": {"n": "a"}}), "invalid_request"),
        (json!({"t": 0, "d": {"n": "go", "c": 1}}), "invalid_request"),
        (json!({"t": 0, "m": {"k": "terminated"}}), "invalid_request"),
        (json!({"t": 0, "?": {}}), "invalid_request"),
        (json!("text"), "invalid_request"),
        (json!({"t": 0, "c": {"n": "a", "o": {"j": "not JSON"}}}), "invalid_request"),
        (json!({"t": 0, "c": {"n": "a", "o": {"j": format!("{long:?}")}}}), "limit_exceeded"),
        (json!({"t": 0, "k": {"n": "child:a", "e": "foreign", "p": "terminate"}}), "invalid_request"),
    ] {
        let body = turn.write(&json!({"entries": [captured("fine"), entry]}));
        assert_eq!(turn.refused("", body).await.1, code, "{entry}");
    }
    assert_eq!(turn.version().await, before);
}

#[tokio::test]
async fn what_a_turn_has_not_seen_and_ends_that_exclude_each_other_are_refused() {
    let turn = Turn::of("e").await;
    for fields in [
        json!({"seen_version": 99}),
        json!({"seen_entries": 99}),
        json!({"heartbeat": true, "release": {}}),
        json!({"close": {"outcome": {"c": {}}}, "suspend": {"seen_wakes": 0}}),
        json!({"close": {"never": {}}}),
        json!({"release": {"reason": "tired"}}),
        json!({"release": {}, "entries": [captured("a")]}),
        json!({"nonsense": 1}),
    ] {
        let (status, code) = turn.refused("", turn.write(&fields)).await;
        assert_eq!((status, code.as_str()), (400, "invalid_request"), "{fields}");
    }
    let (status, _) = turn.refused("/read", json!({"lease": turn.lease, "from": 99})).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn what_is_too_large_or_out_of_bounds_is_not_started_or_stored() {
    let turn = Turn::of("e").await;
    let step = |fields: Value| {
        let mut step = json!({"name": "s", "kind": "k", "queue": "work"});
        step.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"lease": turn.lease, "steps": [step]})
    };
    for (fields, code) in [
        (json!({"retry": {"b": -1.0}}), "invalid_request"),
        (json!({"timeouts": {"r": {"a": 0, "o": "r"}}}), "invalid_request"),
        (json!({"input": "not JSON"}), "invalid_request"),
        (json!({"queue": "a b"}), "invalid_request"),
        (json!({"flow": {"concurrency": [{"key": "a", "limit": 2_000}]}}), "limit_exceeded"),
    ] {
        assert_eq!(turn.refused("/start", step(fields.clone())).await.1, code, "{fields}");
    }
    let child = json!({"name": "child:c", "start": {"workflow": "w", "queue": "work"}});
    let body = json!({"lease": turn.lease, "children": [child]});
    assert_eq!(turn.refused("/start", body).await.1, "invalid_request", "a child without an id");
    let large = json!({"lease": turn.lease, "payload": "x".repeat(MAX)});
    assert_eq!(turn.refused("/payload", large).await.1, "limit_exceeded");
    let many: Vec<String> = (0..101).map(|_| "AAAAAAAAAAAAAAAAAAAAAA".to_owned()).collect();
    let body = json!({"lease": turn.lease, "payloads": many});
    assert_eq!(turn.refused("/read", body).await.1, "limit_exceeded");
}

#[tokio::test]
async fn another_language_runs_a_turn_with_these_calls() {
    let turn = Turn::of("e").await;
    let body = turn.write(&json!({"entries": [captured("a")]}));
    let first = turn.caller.ok("/v1/executions/e/turn", body.clone()).await;
    let again = turn.caller.ok("/v1/executions/e/turn", body).await;
    assert_eq!(first["execution"]["ver"], again["execution"]["ver"], "repeated, it changes nothing more");
    let read = turn.caller.ok("/v1/executions/e/turn/read", json!({"lease": turn.lease, "from": 0})).await;
    assert_eq!(read["journal"], json!([captured("a")]));

    let text = json!("y".repeat(1_000));
    let stored =
        turn.caller.ok("/v1/executions/e/turn/payload", json!({"lease": turn.lease, "payload": text})).await;
    let id = stored["payload"]["b"]["i"].clone();
    let body = json!({"lease": turn.lease, "payloads": [id]});
    let read = turn.caller.ok("/v1/executions/e/turn/read", body).await;
    assert_eq!(read["payloads"][id.as_str().unwrap()], text);

    let step = json!({"name": "s", "kind": "k", "queue": "work", "input": "1"});
    let body = json!({"lease": turn.lease, "steps": [step]});
    for _ in 0..2 {
        let started = turn.caller.ok("/v1/executions/e/turn/start", body.clone()).await;
        assert_eq!((&started["steps"], &started["children"]), (&json!([{"name": "s"}]), &json!([])));
    }
    let task = turn.caller.claim().await.unwrap();
    let report = json!({"lease": task["lease"], "output": [1]});
    turn.caller.ok(&format!("/v1/tasks/{}/complete", task["id"].as_str().unwrap()), report).await;
    let body = json!({"lease": turn.lease, "steps": ["s"]});
    let read = turn.caller.ok("/v1/executions/e/turn/read", body).await;
    assert_eq!(read["outcomes"][0]["end"]["outcome"], json!({"c": {"o": {"j": "[1]"}}}));

    let record = &read["execution"];
    let close = json!({"outcome": {"c": {"o": {"j": "\"done\""}}}});
    let body = json!({
        "lease": turn.lease, "seen_version": record["ver"], "seen_entries": 1, "close": close,
        "entries": [
            {"t": 0, "r": {"n": "s"}},
            {"t": 1, "s": {"n": "s", "o": {"c": {"o": {"j": "[1]"}}}}},
        ],
    });
    turn.caller.ok("/v1/executions/e/turn", body).await;
    let id = ExecutionId::parse("e").unwrap();
    let ended = turn.caller.scene.service.execution(&id).await.unwrap().unwrap();
    assert_eq!(ended.output.unwrap().as_str(), "\"done\"");
}

use serde_json::{Value, json};

use super::*;
use crate::scripted::{Answer, client};

fn key(names: [&str; 2]) -> Value {
    json!([
        {"AttributeName": names[0], "KeyType": "HASH"},
        {"AttributeName": names[1], "KeyType": "RANGE"},
    ])
}

fn index(name: &str, names: [&str; 2], projection: &Value) -> Value {
    json!({"IndexName": name, "IndexStatus": "ACTIVE", "KeySchema": key(names), "Projection": projection})
}

fn ours() -> Value {
    let types = [
        ("pk", "S"),
        ("sk", "S"),
        ("due_shard", "S"),
        ("due_at", "N"),
        ("list_key", "S"),
        ("list_at", "N"),
        ("all_key", "S"),
    ];
    let definitions = types.map(|(name, kind)| json!({"AttributeName": name, "AttributeType": kind}));
    let include = json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": ["due_kind", "q", "inc", "ln"]});
    json!({
        "TableStatus": "ACTIVE",
        "KeySchema": key(["pk", "sk"]),
        "AttributeDefinitions": definitions,
        "GlobalSecondaryIndexes": [
            index("due", ["due_shard", "due_at"], &include),
            index("list", ["list_key", "list_at"], &json!({"ProjectionType": "KEYS_ONLY"})),
            index("all", ["all_key", "list_at"], &json!({"ProjectionType": "KEYS_ONLY"})),
        ],
    })
}

fn in_use() -> Answer {
    Answer::Refused(400, "ResourceInUseException", json!({}))
}

fn expiring(status: &str, by: &str) -> Answer {
    Answer::Done(json!({"TimeToLiveDescription": {"TimeToLiveStatus": status, "AttributeName": by}}))
}

#[tokio::test]
async fn an_existing_ready_table_is_not_changed() {
    let described = Answer::Done(json!({"Table": ours()}));
    let (client, script) = client([in_use(), described, expiring("ENABLED", "ttl")]);
    Table::new("tasks").create(&client).await.unwrap();
    let operations: Vec<String> = script.requests().into_iter().map(|(operation, _)| operation).collect();
    assert_eq!(operations, ["CreateTable", "DescribeTable", "DescribeTimeToLive"]);
}

#[tokio::test]
async fn create_waits_for_a_table_that_is_being_created() {
    let mut creating = ours();
    creating["TableStatus"] = json!("CREATING");
    let mut indexing = ours();
    indexing["GlobalSecondaryIndexes"][1]["IndexStatus"] = json!("CREATING");
    let (client, script) = client([
        Answer::Done(json!({"TableDescription": creating.clone()})),
        Answer::Refused(400, "ResourceNotFoundException", json!({})),
        Answer::Done(json!({"Table": creating})),
        Answer::Done(json!({"Table": indexing})),
        Answer::Done(json!({"Table": ours()})),
        expiring("DISABLED", "ttl"),
        Answer::Done(json!({})),
        Answer::Refused(400, "UnknownOperationException", json!({})),
    ]);
    let table = Table { point_in_time_recovery: true, ..Table::new("tasks") };
    table.create(&client).await.unwrap();
    let requests = script.requests();
    assert_eq!(requests.len(), 8);
    assert_eq!(requests[6].1["TimeToLiveSpecification"], json!({"AttributeName": "ttl", "Enabled": true}));
    assert_eq!(requests[7].0, "UpdateContinuousBackups");
}

#[tokio::test]
async fn another_table_of_the_name_is_refused_with_the_difference() {
    let mut other_key = ours();
    other_key["KeySchema"] = json!([{"AttributeName": "id", "KeyType": "HASH"}]);
    let mut other_type = ours();
    other_type["AttributeDefinitions"][3]["AttributeType"] = json!("S");
    let mut no_index = ours();
    no_index["GlobalSecondaryIndexes"] = json!([]);
    let mut no_kind = ours();
    no_kind["GlobalSecondaryIndexes"][0]["Projection"] = json!({"ProjectionType": "KEYS_ONLY"});
    for (table, says) in [
        (other_key, "its key is id, not pk + sk"),
        (other_type, r#""due_at" is of type S, not N"#),
        (no_index, r#"it has no index "due""#),
        (no_kind, r#"its index "due" doesn't project "due_kind""#),
    ] {
        let (client, script) = client([in_use(), Answer::Done(json!({"Table": table}))]);
        let error = Table::new("tasks").create(&client).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(script.requests().len(), 2);
    }
}

#[test]
fn the_infrastructures_core_makes_the_same_table() {
    let template = include_str!("../../../../infra/core.yaml");
    // The throughput at a table's start is the deployment's own affair.
    let is_schema = |line: &&str| !line.contains("WarmThroughput") && !line.trim_start().starts_with('#');
    let lines = template.lines().filter(is_schema);
    let template = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    let key = |[hash, range]: [&str; 2]| {
        format!(
            "KeySchema: - {{ AttributeName: {hash}, KeyType: HASH }} - {{ AttributeName: {range}, KeyType: RANGE }}"
        )
    };
    let attributes = KEYS.map(|(name, kind)| {
        let kind = kind.as_str();
        format!("- {{ AttributeName: {name}, AttributeType: {kind} }}")
    });
    let indexes = INDEXES.map(|(name, names)| {
        let projection = if name == DUE_INDEX {
            format!("INCLUDE, NonKeyAttributes: [{}]", DUE_PROJECTION.join(", "))
        } else {
            "KEYS_ONLY".to_owned()
        };
        format!("- IndexName: {name} {} Projection: {{ ProjectionType: {projection} }}", key(names))
    });
    let table = format!(
        "BillingMode: PAY_PER_REQUEST AttributeDefinitions: {} {} GlobalSecondaryIndexes: {} \
         TimeToLiveSpecification: {{ AttributeName: {TTL}, Enabled: true }}",
        attributes.join(" "),
        key([PK, SK]),
        indexes.join(" "),
    );
    assert!(template.contains(&table), "infra/core.yaml has no table with {table}");
}

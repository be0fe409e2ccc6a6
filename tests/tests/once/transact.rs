//! Work that is started together with the user's own writes, over `DynamoDB`'s semantics in this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, Put, ScalarAttributeType,
    TransactWriteItem,
};
use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, WorkflowName};
use tickover_core::payload::Json;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::executions::{StartRequest, Work};
use tickover_service::ports::Store;
use tickover_service::transact::Prepared;
use tickover_tests::dynamodb::LocalDynamo;
use tickover_tests::scene::{Scene, claim_request, queue_name, request, task_id};

const ORDERS: &str = "orders";

/// Tickover's table and one of the user's, in the same database.
struct Shop {
    scene: Scene,
    store: Arc<DynamoStore>,
    client: Client,
}

impl Shop {
    async fn open() -> Self {
        let client = LocalDynamo::memory().unwrap().client();
        Table::new("tickover").create(&client).await.unwrap();
        let id =
            || AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S);
        let key = || KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash);
        client
            .create_table()
            .table_name(ORDERS)
            .attribute_definitions(id().build().unwrap())
            .key_schema(key().build().unwrap())
            .billing_mode(BillingMode::PayPerRequest)
            .send()
            .await
            .unwrap();
        let store = Arc::new(DynamoStore::new(client.clone(), "tickover"));
        let scene = Scene::over(store.clone() as Arc<dyn Store>);
        Self { scene, store, client }
    }

    /// The user's own write: an order that must be new.
    fn order(id: &str) -> TransactWriteItem {
        let put = Put::builder()
            .table_name(ORDERS)
            .item("id", AttributeValue::S(id.to_owned()))
            .condition_expression("attribute_not_exists(id)")
            .build()
            .unwrap();
        TransactWriteItem::builder().put(put).build()
    }

    /// Commits the order and our writes together; returns whether that succeeded.
    async fn commit(&self, order: &str, writes: &[Write]) -> bool {
        let items = self.store.transact_items(writes).unwrap();
        let request = self.client.transact_write_items().transact_items(Self::order(order));
        let sent = items
            .into_iter()
            .fold(request, aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsFluentBuilder::transact_items)
            .send()
            .await;
        match sent {
            Ok(_) => true,
            Err(error) => {
                let error = error.into_service_error();
                assert!(error.is_transaction_canceled_exception(), "{error:?}");
                false
            }
        }
    }

    async fn has_order(&self, id: &str) -> bool {
        let id = AttributeValue::S(id.to_owned());
        let found = self.client.get_item().table_name(ORDERS).key("id", id).send().await.unwrap();
        found.item.is_some()
    }

    async fn has_execution(&self, id: &str) -> bool {
        self.scene.service.execution(&execution_id(id)).await.unwrap().is_some()
    }

    async fn prepare(&self, id: &str, input: Option<&str>) -> Prepared<ExecutionId> {
        let mut request = StartRequest::new(WorkflowName::parse("fulfil").unwrap(), queue_name("orders"));
        request.id = Some(execution_id(id));
        request.input = input.map(|text| Json::parse(text).unwrap());
        self.scene.service.prepare_start(request).await.unwrap()
    }

    /// The execution whose turn the queue's message starts.
    async fn turn(&self) -> Option<(String, Option<Json>)> {
        let work = self.scene.service.next_work(&queue_name("orders"), &claim_request(1)).await.unwrap();
        match work.into_iter().next()? {
            Work::Turn(turn) => Some((turn.execution.id.to_string(), turn.input)),
            Work::Task(task) => panic!("a task: {task:?}"),
        }
    }

    /// Advances the time in ticks until there is a turn, at most for this long.
    async fn turn_by_tick(&self, within: Millis) -> Option<(String, Option<Json>)> {
        let until = self.scene.service.now().plus(within);
        while self.scene.service.now() < until {
            self.scene.clock.advance(Millis::from_secs(60));
            self.scene.tick().await.unwrap();
            if let Some(turn) = self.turn().await {
                return Some(turn);
            }
        }
        None
    }
}

fn execution_id(id: &str) -> ExecutionId {
    ExecutionId::parse(id).unwrap()
}

#[tokio::test]
async fn the_order_and_its_execution_are_committed_together() {
    let shop = Shop::open().await;
    let prepared = shop.prepare("order-7", Some("{\"boxes\":3}")).await;
    assert!(!prepared.existed && !shop.has_execution("order-7").await);
    assert!(shop.commit("7", &prepared.writes).await);
    assert!(shop.has_order("7").await && shop.has_execution("order-7").await);

    shop.scene.service.announce(prepared).await;
    let (id, input) = shop.turn().await.unwrap();
    assert_eq!((id.as_str(), input.unwrap().as_str()), ("order-7", "{\"boxes\":3}"));
}

#[tokio::test]
async fn neither_is_there_if_the_users_own_condition_fails() {
    let shop = Shop::open().await;
    let first = shop.prepare("order-7", None).await;
    assert!(shop.commit("7", &first.writes).await);
    let second = shop.prepare("order-7-again", None).await;
    assert!(!shop.commit("7", &second.writes).await, "the order exists");
    assert!(!shop.has_execution("order-7-again").await);
}

#[tokio::test]
async fn neither_exists_if_the_id_is_used_meanwhile_and_preparing_again_is_refused() {
    let shop = Shop::open().await;
    let (first, second) = (shop.prepare("order-7", None).await, shop.prepare("order-7", None).await);
    assert!(shop.commit("7", &first.writes).await);
    assert!(!shop.commit("8", &second.writes).await, "the execution exists");
    assert!(!shop.has_order("8").await);

    let again = shop.prepare("order-7", None).await;
    assert!(again.existed && again.writes.is_empty());
    assert!(shop.commit("8", &again.writes).await);
}

#[tokio::test]
async fn the_tick_finds_work_whose_hint_was_never_sent() {
    let shop = Shop::open().await;
    // Too large for the record: the item that the record points to has to be there as well.
    let input = format!("\"{}\"", "x".repeat(20_000));
    let prepared = shop.prepare("order-7", Some(&input)).await;
    assert!(shop.commit("7", &prepared.writes).await);
    assert_eq!(shop.turn().await, None);
    let (id, found) = shop.turn_by_tick(Millis::from_secs(1_200)).await.unwrap();
    assert_eq!((id.as_str(), found.unwrap().as_str()), ("order-7", input.as_str()));
}

#[tokio::test]
async fn a_transaction_that_is_never_sent_leaves_nothing_that_can_be_found() {
    let shop = Shop::open().await;
    let input = format!("\"{}\"", "x".repeat(20_000));
    let prepared = shop.prepare("order-7", Some(&input)).await;
    assert_eq!(prepared.writes.len(), 1);
    assert!(!shop.has_execution("order-7").await);
    assert_eq!(shop.turn_by_tick(Millis::from_secs(1_200)).await, None);
}

#[tokio::test]
async fn a_task_and_its_idempotency_key_come_with_the_order() {
    let shop = Shop::open().await;
    let keyed = || {
        let mut request = request("work", None, Some("1"));
        request.idempotency_key = Some("order-7".to_owned());
        request
    };
    let service = &shop.scene.service;
    let prepared = service.prepare_schedule(keyed()).await.unwrap();
    let id = prepared.id.clone();
    assert_eq!(prepared.writes.len(), 2);
    assert!(shop.commit("7", &prepared.writes).await);
    service.announce(prepared).await;

    let repeated = service.schedule(keyed()).await.unwrap();
    assert!(repeated.existed && repeated.task.id == id);
    let prepared = service.prepare_schedule(keyed()).await.unwrap();
    assert!(prepared.existed && prepared.id == id && prepared.writes.is_empty());
    let claimed = shop.scene.claim("work").await.unwrap().unwrap();
    assert_eq!((claimed.task.id, claimed.input.unwrap().as_str()), (id, "1"));
}

#[tokio::test]
async fn a_task_of_a_refused_transaction_does_not_exist() {
    let shop = Shop::open().await;
    let service = &shop.scene.service;
    let first = service.prepare_schedule(request("work", Some("a"), None)).await.unwrap();
    assert!(shop.commit("7", &first.writes).await);
    let second = service.prepare_schedule(request("work", Some("b"), None)).await.unwrap();
    assert!(!shop.commit("7", &second.writes).await, "the order exists");
    assert!(service.describe(&task_id("b")).await.is_err());
    assert!(service.describe(&task_id("a")).await.is_ok());
}

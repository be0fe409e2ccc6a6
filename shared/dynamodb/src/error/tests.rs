use serde_json::{Value, json};
use tickover_core::id::TaskId;
use tickover_service::ports::{Consistency, Store as _, StoreError};

use crate::scripted::{Answer, store};

/// The result of a read that is refused with this code.
async fn refused(status: u16, code: &'static str) -> Result<(), StoreError> {
    let (store, _) = store([Answer::Refused(status, code, json!({"message": "a text that nobody reads"}))]);
    store.record(&TaskId::parse("t").unwrap().into(), Consistency::Strong).await.map(drop)
}

#[tokio::test]
async fn a_refusal_that_will_not_pass_says_what_to_do() {
    let mut told = Vec::new();
    for (code, advice) in [
        ("ResourceNotFoundException", "correct TICKOVER_TABLE, or deploy the stack"),
        ("AccessDeniedException", "allow it for the table and its indexes"),
        ("UnrecognizedClientException", "the credentials are wrong or no longer valid"),
        ("ExpiredTokenException", "the credentials are wrong or no longer valid"),
        ("ValidationException", "the table has other keys or indexes than this build asks for"),
    ] {
        let Err(StoreError::Unavailable { reason, .. }) = refused(400, code).await else { panic!("{code}") };
        assert!(reason.starts_with(code) && reason.contains(advice), "{reason}");
        told.push(reason);
    }
    told.dedup();
    assert_eq!(told.len(), 5, "each differs from all others: {told:?}");
}

#[tokio::test]
async fn a_temporary_error_has_no_advice() {
    let Err(StoreError::Unavailable { reason, .. }) = refused(500, "InternalServerError").await else {
        panic!()
    };
    assert_eq!(reason, "InternalServerError: a text that nobody reads");
    assert!(matches!(refused(400, "ThrottlingException").await, Err(StoreError::Throttled)));
}

#[tokio::test]
async fn a_record_of_another_format_says_which_and_which_is_read_here() {
    let item: Value = json!({"pk": {"S": "task#t"}, "sk": {"S": "task"}, "v": {"N": "9"}});
    let (store, _) = store([Answer::Done(json!({"Item": item}))]);
    let Err(StoreError::Corrupt { reason }) =
        store.record(&TaskId::parse("t").unwrap().into(), Consistency::Strong).await
    else {
        panic!()
    };
    assert_eq!(reason, "task t is stored in format 9, where this build reads 1");
}

use super::*;
use crate::payload::Json;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn started() -> Operation {
    let new = NewOperation {
        id: OperationId::parse("nightly").unwrap(),
        fingerprint: Fingerprint::from_bytes([1; 16]),
        action: Action::Retry,
        target: Target::Executions,
        dry_run: false,
        details: Payload::Inline(Json::null()),
        by: None,
    };
    Operation::new(new, None, Nonce::from_bytes([2; 8]), at(0), 4)
}

fn page(changed: u64, refused: u64) -> Counts {
    let refused = BTreeMap::from([("already_terminal".to_owned(), refused)]);
    Counts { matched: changed + 1, changed, unchanged: 0, refused }
}

fn next() -> String {
    "x".to_owned()
}

#[test]
fn it_ends_with_the_page_after_which_there_is_none() {
    let first = started().note_page(0, page(99, 1), Some(next()), at(1)).unwrap();
    assert_eq!((first.pages, first.cursor.as_deref(), first.is_over()), (1, Some("x"), false));
    let last = first.note_page(1, page(6, 1), None, at(2)).unwrap();
    assert_eq!((last.counts.matched, last.counts.changed, &last.due), (107, 105, &None));
    assert_eq!(last.counts.refused, BTreeMap::from([("already_terminal".to_owned(), 2)]));
    let end = last.end.as_ref().unwrap();
    assert_eq!(
        (&end.how, end.at, last.expires_at()),
        (&HowEnded::Completed, at(2), Some(at(2).plus(KEPT_FOR)))
    );
    assert!(last.is_gone(end.expires_at) && !last.is_gone(at(3)));
}

#[test]
fn one_that_ends_open_tasks_looks_again_until_there_is_none_to_change() {
    let (action, target) = (Action::Cancel, Target::Tasks);
    let counts =
        |matched, changed| Counts { matched, changed, unchanged: matched - changed, ..Counts::default() };
    let first = Operation { action, target, ..started() }.note_page(0, counts(100, 90), None, at(1)).unwrap();
    assert_eq!((first.is_over(), &first.cursor), (false, &None));
    // Some that were asked to end are still there.
    let second = first.note_page(1, counts(12, 2), Some(next()), at(2)).unwrap();
    let second = second.note_page(2, counts(1, 0), None, at(3)).unwrap();
    let third = second.note_page(3, counts(7, 0), None, at(4)).unwrap();
    assert_eq!((second.is_over(), third.is_over()), (false, true));
    assert_eq!((third.counts.matched, third.counts.changed, third.counts.unchanged), (102, 92, 10));
    let nothing = Operation { action, target, ..started() }.note_page(0, counts(3, 0), None, at(1)).unwrap();
    assert!(nothing.is_over());
}

#[test]
fn a_page_counts_once() {
    let first = started().note_page(0, page(99, 1), Some(next()), at(1)).unwrap();
    assert_eq!(first.note_page(0, page(99, 1), Some(next()), at(1)), None);
}

#[test]
fn a_stopped_one_ends_once_the_page_that_was_under_way_is_counted() {
    let ada = Some(Caller::new("ada"));
    let stopping = started().stopped(ada.clone(), at(1)).unwrap();
    assert_eq!((stopping.is_over(), &stopping.stop), (false, &Some(Stop { at: at(1), by: ada })));
    // A process that is lost is found.
    assert_eq!(stopping.due, started().due);
    assert_eq!(stopping.stopped(None, at(2)), None);
    let noted = stopping.note_page(0, page(9, 1), Some(next()), at(3)).unwrap();
    assert_eq!((noted.counts.changed, noted.due), (9, None));
    let end = noted.end.as_ref().unwrap();
    assert_eq!((&end.how, end.at), (&HowEnded::Stopped, at(3)));
    assert_eq!((noted.stopped(None, at(4)), noted.ended(HowEnded::Completed, at(4))), (None, None));
    let last = stopping.note_page(0, page(9, 1), None, at(3)).unwrap();
    assert_eq!(last.end.map(|end| end.how), Some(HowEnded::Completed), "nothing was left to stop");
}

#[test]
fn a_stopped_one_goes_on_after_its_last_page_and_carries_out_again_one_that_was_lost() {
    let first = started().note_page(0, page(99, 1), Some(next()), at(1)).unwrap();
    assert_eq!(first.resumed(at(2), 4), None);
    let stopping = first.stopped(None, at(2)).unwrap();
    assert_eq!(stopping.resumed(at(3), 4), None, "its last page isn't counted yet");
    let counted = stopping.note_page(1, page(9, 1), Some("y".to_owned()), at(3)).unwrap();
    let on = counted.resumed(at(50), 4).unwrap();
    assert_eq!((on.pages, on.cursor.as_deref(), &on.counts), (2, Some("y"), &counted.counts));
    assert_eq!((on.is_over(), &on.stop, on.due.map(|due| due.at)), (false, &None, Some(at(110))));
    let cut = stopping.note_cut_page(1, 7, at(3)).unwrap();
    assert_eq!((cut.pages, cut.counts.changed, cut.is_over()), (2, 106, true));
    assert_eq!(stopping.note_cut_page(0, 7, at(3)), None);
    let on = cut.resumed(at(50), 4).unwrap();
    assert_eq!((on.pages, on.cursor.as_deref(), &on.counts, on.cut), (1, Some("x"), &first.counts, None));
    let failed = first.ended(HowEnded::Failed { message: "no list".to_owned() }, at(2)).unwrap();
    assert_eq!(failed.resumed(at(50), 4).map(|on| on.pages), Some(1));
    let completed = first.ended(HowEnded::Completed, at(2)).unwrap();
    assert_eq!(completed.resumed(at(50), 4), None);
}

#[test]
fn its_slot_moves_only_when_little_of_it_is_left() {
    let due = |operation: &Operation| operation.due.map(|due| due.at);
    let first = started().note_page(0, page(1, 0), Some(next()), at(30)).unwrap();
    assert_eq!(due(&first), Some(at(60)));
    let second = first.note_page(1, page(1, 0), Some(next()), at(31)).unwrap();
    assert_eq!(due(&second), Some(at(91)));
}

#[test]
fn one_without_a_process_is_taken_over_once_its_slot_is_due() {
    assert_eq!(started().take_over(at(59)), None);
    let taken = started().take_over(at(70)).unwrap();
    assert_eq!((taken.due.map(|due| due.at), taken.take_over(at(71))), (Some(at(130)), None));
    assert_eq!(started().ended(HowEnded::Stopped, at(1)).unwrap().take_over(at(200)), None);
}

#[test]
fn an_id_is_free_again_after_the_retention() {
    let old = started().ended(HowEnded::Stopped, at(1)).unwrap();
    let old = Operation { version: 7, ..old };
    let new = NewOperation {
        id: old.id.clone(),
        fingerprint: old.fingerprint,
        action: Action::Cancel,
        target: Target::Tasks,
        dry_run: true,
        details: Payload::Inline(Json::null()),
        by: None,
    };
    let again = Operation::new(new, Some(&old), Nonce::from_bytes([3; 8]), at(9), 4);
    assert_eq!((again.version, again.is_over(), again.dry_run), (8, false, true));
}

#[test]
fn a_stored_one_is_read_back_as_it_was() {
    let stored = started().note_page(0, page(3, 2), Some(next()), at(1)).unwrap();
    let text = serde_json::to_string(&stored).unwrap();
    assert_eq!(serde_json::from_str::<Operation>(&text).unwrap(), stored);
    assert!(text.len() < 640, "with its keys an item stays within one write unit: {} bytes", text.len());
}

use super::*;

fn unused(replay: &Replay) -> Vec<String> {
    replay.unused().map(ToString::to_string).collect()
}

#[test]
fn what_the_code_does_not_ask_for_is_drift_unless_it_may_come_to_it_later() {
    let mut changed = replay([completed("a"), fired("nap"), completed("b"), note("drift", Some("b"))]);
    changed.claim(&name("a")).unwrap();
    assert_eq!(unused(&changed), ["b", "nap"]);
    assert!(changed.is_noted(&name("b")) && !changed.is_noted(&name("nap")));
    // A rerun gets to the kept results only after the steps that run again.
    let kept = replay([completed("a"), completed("b"), note("restarted", None), completed("c")]);
    assert_eq!(unused(&kept), ["c"]);
    let reopened = replay([
        completed("a"),
        completed("b"),
        Happened::Reopened { name: name("a"), by: None, input: None },
    ]);
    assert_eq!(unused(&reopened), Vec::<String>::new());
    assert_eq!(reopened.unclaimed().collect::<Vec<_>>(), [&name("b")]);
    // What was recorded after that, the code must ask for.
    let reopened_then = |next| {
        let again = Happened::Reopened { name: name("a"), by: None, input: None };
        replay([completed("a"), completed("b"), again, completed("a"), next])
    };
    assert_eq!(unused(&reopened_then(completed("c"))), ["a", "c"]);
}

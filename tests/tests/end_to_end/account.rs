//! What only an account shows. Each test says aloud what it leaves out in an emulator: see [`Check`](crate::target::Check).

mod dashboard;
mod life;
mod loops;
mod policies;
mod roles;

use std::collections::BTreeSet;

use crate::target::{Check, Target};

/// The sources of the tests that leave something out.
const SOURCES: [&str; 5] = [
    include_str!("account/dashboard.rs"),
    include_str!("account/life.rs"),
    include_str!("account/loops.rs"),
    include_str!("account/roles.rs"),
    include_str!("tasks.rs"),
];

/// Together the emulators leave out every check, an account none, and each check is made by a test.
#[test]
fn what_an_emulator_leaves_out_is_complete() {
    assert_eq!(Target::LocalStack.leaves_out(), Check::ALL);
    assert_eq!([Target::Emulator.leaves_out(), vec![Check::Signatures]].concat(), Check::ALL);
    assert_eq!(Target::Account.leaves_out(), []);
    let rehearsed = Target::Rehearsal.leaves_out();
    assert!(!rehearsed.is_empty() && rehearsed.len() < Check::ALL.len(), "{rehearsed:?}");
    let asked = |source: &str| {
        let names =
            source.split(".shows(Check::").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    for source in SOURCES {
        assert!(!asked(source).is_empty(), "a test that leaves nothing out isn't for an account: {source}");
    }
    let made: BTreeSet<String> = SOURCES.into_iter().flat_map(asked).collect();
    let all: BTreeSet<String> = Check::ALL.iter().map(|check| format!("{check:?}")).collect();
    assert_eq!(made, all);
    let said: BTreeSet<&str> = Check::ALL.iter().map(|check| check.is_left_out().0).collect();
    assert_eq!(said.len(), Check::ALL.len(), "each has a line of its own");
}

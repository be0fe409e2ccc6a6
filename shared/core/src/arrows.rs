//! The arrows between states in `ARCHITECTURE.md`, to be compared with those that random lives take.

use std::collections::BTreeSet;
use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

const DOCUMENT: &str = include_str!("../../../ARCHITECTURE.md");
/// Stands for the command by which an instant that has passed is recorded: it may be any.
pub(crate) const TIME: &str = "time";

/// How many steps are tried at each moment of a life. The first one is taken.
pub(crate) const TRIED: usize = 8;

/// From a state, by a command, to a state.
pub(crate) type Arrow = [String; 3];

pub(crate) fn arrow(from: &str, by: &str, to: &str) -> Arrow {
    [from, by, to].map(str::to_owned)
}

/// The name of a command: that of its variant in lower case.
pub(crate) fn name_of(command: &impl Debug) -> String {
    let text = format!("{command:?}");
    let variant = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    let words = variant.char_indices().map(|(place, letter)| match letter {
        'A'..='Z' if place > 0 => format!("_{}", letter.to_ascii_lowercase()),
        _ => letter.to_ascii_lowercase().to_string(),
    });
    words.collect()
}

/// Lives that are the same each time.
pub(crate) fn same_lives<S: Strategy>(strategy: &S, life: impl Fn(S::Value)) {
    let config = Config { cases: 120, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let life = |given| {
        life(given);
        Ok::<(), TestCaseError>(())
    };
    runner.run(strategy, life).unwrap();
}

/// Checks the table and the picture below a heading: they have exactly these arrows.
#[track_caller]
pub(crate) fn are_documented(taken: &BTreeSet<Arrow>, heading: &str) {
    let (_, section) = DOCUMENT.split_once(heading).expect(heading);
    let section = section.split("\n## ").next().unwrap_or_default();
    assert_eq!(&in_table(section), taken, "the table (left) and the arrows that were taken");
    let pairs: BTreeSet<_> = taken.iter().map(|[from, _, to]| [from.clone(), to.clone()]).collect();
    assert_eq!(in_picture(section), pairs, "the picture (left) and the arrows that were taken");
}

/// Each state in the first cell of a row, with each command in the second one and each state in the third one.
fn in_table(section: &str) -> BTreeSet<Arrow> {
    let rows = section.lines().skip_while(|line| *line != "| from | by | to | when |").skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut arrows = BTreeSet::new();
    for row in rows {
        let cells: Vec<_> = row.split('|').skip(1).take(3).map(names).collect();
        let [from, by, to] = &cells[..] else { panic!("{row}") };
        for from in from {
            for by in by {
                arrows.extend(to.iter().map(|to| arrow(from, by, to)));
            }
        }
    }
    arrows
}

/// The pairs of states in the section's diagram.
fn in_picture(section: &str) -> BTreeSet<[String; 2]> {
    let pairs = section.lines().filter_map(|line| line.trim().split_once(" --> "));
    let name = |state: &str| if state == "[*]" { "new".to_owned() } else { state.to_owned() };
    pairs.map(|(from, to)| [name(from), name(to)]).collect()
}

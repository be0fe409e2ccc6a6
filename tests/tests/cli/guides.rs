//! The commands of the guides that print what something costs.

use tickover_tests::process::{Process, binary};
use tokio::process::Command;

const GUIDES: [&str; 4] = [
    include_str!("../../../README.md"),
    include_str!("../../../infra/COST.md"),
    include_str!("../../../infra/OPERATE.md"),
    include_str!("../../../infra/PRODUCTION.md"),
];

/// The arguments of each `cargo run -- cost …`, which ends with its line or its quotation.
fn costs() -> Vec<String> {
    let text = GUIDES.concat().replace("\n--", " --");
    let found = text.split("cargo run -- cost").skip(1);
    found.map(|rest| rest.split(['`', '\n', '#']).next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn each_cost_in_the_guides_is_printed_by_the_command_beside_it() {
    let costs = costs();
    assert!(costs.len() >= 4, "{costs:?}");
    for arguments in costs {
        let mut command = Command::new(binary("tickover"));
        command.arg("cost").args(arguments.split_whitespace());
        let ended = Process::from_command(&mut command).expect("a process").ended().await.expect("an end");
        assert!(ended.status.success() && ended.stdout.contains("USD a month"), "cost{arguments}: {ended:?}");
    }
}

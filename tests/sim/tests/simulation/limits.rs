//! The deployed values that the simulated world uses: how often a queue delivers a message.

const TEMPLATES: [&str; 3] = [
    include_str!("../../../../infra/core.yaml"),
    include_str!("../../../../infra/worker.yaml"),
    include_str!("../../../../infra/queue.yaml"),
];
/// For how long no function may be invoked without an unprocessed message becoming a dead letter.
const WITHOUT_FUNCTIONS_S: u32 = 3_600;

/// A message counts as received even if the function isn't invoked because of the concurrency limit.
#[test]
fn an_hour_without_functions_makes_no_dead_letters() {
    let number = |line: &str, name: &str| -> Option<u32> {
        let digits = line.split_once(name)?.1.trim_start().split(|one: char| !one.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let (mut hidden_s, mut queues) = (0, 0);
    for line in TEMPLATES.iter().flat_map(|template| template.lines()) {
        // A worker's queue has one of three, by the function's timeout. The first is the shortest.
        if let Some(shortest_s) = number(line, "\"60\": { Visibility:") {
            hidden_s = shortest_s;
        }
        hidden_s = number(line, "VisibilityTimeout:").unwrap_or(hidden_s);
        if let Some(receives) = number(line, "maxReceiveCount:") {
            queues += 1;
            let lasts_s = hidden_s * receives;
            assert!(lasts_s >= WITHOUT_FUNCTIONS_S, "{lasts_s} s: {line}");
        }
    }
    // Ingress, completions, timers, events; a worker's queue and a queue of tasks alone, each with two class queues.
    assert_eq!(queues, 4 + 2 * 3);
}

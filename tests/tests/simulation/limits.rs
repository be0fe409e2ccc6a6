//! What the simulated world takes from the deployed one: how often a queue hands a message out.

const TEMPLATE: &str = include_str!("../../../infra/template.yaml");
/// For how long no function may be called, without a message that nobody has looked at becoming a dead letter.
const WITHOUT_FUNCTIONS_S: u32 = 3_600;

/// A function that isn't called because too many others are at work has its messages counted as received all the same.
#[test]
fn an_hour_without_functions_makes_no_dead_letters() {
    let number = |line: &str, name: &str| -> Option<u32> {
        let digits = line.split_once(name)?.1.trim_start().split(|one: char| !one.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let (mut hidden_s, mut queues) = (0, 0);
    for line in TEMPLATE.lines() {
        hidden_s = number(line, "VisibilityTimeout:").unwrap_or(hidden_s);
        if let Some(receives) = number(line, "maxReceiveCount:") {
            queues += 1;
            let lasts_s = hidden_s * receives;
            assert!(lasts_s >= WITHOUT_FUNCTIONS_S, "{lasts_s} s: {line}");
        }
    }
    assert_eq!(queues, 5, "ingress, completions, timers, work queues, events");
}

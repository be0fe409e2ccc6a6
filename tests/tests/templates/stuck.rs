//! Checks that each queue which a function of a template reads has an alarm for a function that fails with all its messages:
//! some are received, and none is deleted. It is an essential one, because nothing else tells of that soon.

use anyhow::{Context, Result, ensure};

use crate::template::{blocks, title};

const METRICS: [&str; 2] = ["NumberOfMessagesReceived", "NumberOfMessagesDeleted"];
/// The conditions of essential alarms.
const ESSENTIAL: [&str; 2] = ["HasAlarms", "HasPrioritiesAlarms"];

/// Checks all event sources of a template.
fn check(file: &str, text: &str) -> Result<()> {
    let resources = blocks(text, "Resources");
    let of_type = |kind: &str| {
        let line = format!("    Type: AWS::{kind}\n");
        resources.iter().filter(move |block| block.contains(&line))
    };
    for source in of_type("Lambda::EventSourceMapping") {
        let queue = queue(source, &resources).with_context(|| format!("{file}: {}", title(source)))?;
        let dimension = format!("Dimensions: [{{ Name: QueueName, Value: !Sub \"{queue}\" }}]");
        let compares = |alarm: &&&str| {
            let mut watched = alarm.lines().filter(|line| line.contains(&dimension));
            METRICS.iter().all(|metric| watched.clone().any(|line| line.contains(&format!(" {metric},"))))
                && watched.all(|line| METRICS.iter().any(|metric| line.contains(metric)))
        };
        let alarm = of_type("CloudWatch::Alarm").find(compares);
        let alarm =
            alarm.with_context(|| format!("{file}: no alarm says that nothing of {queue} is done"))?;
        let is_essential = ESSENTIAL.iter().any(|name| alarm.contains(&format!("\n    Condition: {name}\n")));
        ensure!(is_essential, "{file}: {} isn't essential", title(alarm));
    }
    Ok(())
}

/// The name of the queue that the source reads, as the template writes it in `!Sub`.
fn queue(source: &str, resources: &[&str]) -> Result<String> {
    let arn = source.lines().find_map(|line| line.strip_prefix("      EventSourceArn: "));
    let arn = arn.context("no EventSourceArn in one line")?;
    let name = if let Some(resource) = arn.strip_prefix("!GetAtt ").and_then(|arn| arn.strip_suffix(".Arn")) {
        let queue = resources.iter().find(|block| title(block) == resource).context("no such queue")?;
        queue.lines().find_map(|line| line.strip_prefix("      QueueName: !Sub \"")?.strip_suffix('"'))
    } else {
        arn.strip_suffix('"').and_then(|arn| arn.split_once("${AWS::AccountId}:")).map(|(_, name)| name)
    };
    Ok(name.context("the queue has no name")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parts, read};

    #[test]
    fn each_queue_that_a_function_reads_has_an_alarm_for_a_function_that_only_fails() {
        for (file, text) in parts::all().unwrap() {
            check(file, &text).unwrap();
        }
        for (file, alarm) in [
            (parts::CORE, "IngressStuckAlarm"),
            (parts::CORE, "CompletionsStuckAlarm"),
            (parts::CORE, "TimersStuckAlarm"),
            (parts::WORKER, "StuckAlarm"),
            (parts::WORKER, "HighStuckAlarm"),
            (parts::WORKER, "LowStuckAlarm"),
        ] {
            let text = read(file).unwrap();
            let found = blocks(&text, "Resources").into_iter().find(|block| title(block) == alarm).unwrap();
            let refused = |changed: &str| check(file, &text.replace(found, changed)).unwrap_err();
            refused("");
            refused(&found.replace("NumberOfMessagesDeleted", "ApproximateNumberOfMessagesVisible"));
            refused(&found.replace("Condition: Has", "Condition: HasAll"));
        }
    }
}

//! Checks of `infra/core.yaml` and `infra/worker.yaml`: what they may not contain, what the one must make for the other,
//! and whether their alarms watch something that exists.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use super::{read, template};

pub(super) const CORE: &str = "infra/core.yaml";
pub(super) const WORKER: &str = "infra/worker.yaml";
const METRICS: &str = "shared/service/src/metric.rs";
/// What `LocalStack`'s `CloudFormation` gets wrong. Without parameters that are lists, no list is joined either.
const FORBIDDEN: [&str; 7] =
    ["Transform:", "Fn::ForEach", "&{", "Fn::Join", "!Join", "CommaDelimitedList", "List<"];
const PARAMETER: &str = "/tickover/${System}/";

pub(super) fn check() -> Result<()> {
    let [core, worker, metrics] = [read(CORE)?, read(WORKER)?, read(METRICS)?];
    for (file, text) in [(CORE, &core), (WORKER, &worker)] {
        is_plain(text).context(file)?;
        alarms(text, &metrics).context(file)?;
        template::loops(file, text, "Type: AWS::Lambda::Function")?;
    }
    let roles = ["ScheduleRole", "ClaimRole", "CompleteRole", "GatewayRole"];
    template::reports(CORE, &core, &roles, "${System}-work-*")?;
    template::reports(WORKER, &worker, &["WorkerRole"], "${System}-work-${Queue}")?;
    essential(&[&core, &worker], &metrics)?;
    is_made(&core, &worker)
}

/// The alarms and the dashboard use exactly the metrics that the functions write by default.
fn essential(templates: &[&str], metrics: &str) -> Result<()> {
    let list = quoted_between(metrics, "pub const ESSENTIAL: ", "];").context("no list of metrics")?;
    let written: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("const ")?.split_once(": &str = \""))
        .filter(|(constant, _)| list.lines().any(|line| line.trim().trim_end_matches(',') == *constant))
        .filter_map(|(_, rest)| rest.strip_suffix("\";"))
        .collect();
    let used: BTreeSet<&str> = templates.iter().flat_map(|text| names(text)).collect();
    ensure!(
        !written.is_empty() && written == used,
        "alarms and dashboard use {used:?}; written by default: {written:?}"
    );
    Ok(())
}

/// The names of metrics in a template.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("tickover_").map(|(at, _)| {
        let rest = &text[at..];
        let end =
            rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

fn is_plain(text: &str) -> Result<()> {
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let found = FORBIDDEN.iter().find(|construct| line.contains(**construct));
        ensure!(found.is_none(), "not every emulator can read this: {}", line.trim());
    }
    Ok(())
}

/// The core makes each parameter and each export that a worker reads.
fn is_made(core: &str, worker: &str) -> Result<()> {
    let made = |line: &&str| line.trim_start().starts_with("Name: ");
    let made: BTreeSet<&str> = core
        .lines()
        .filter(made)
        .filter_map(|line| line.split_once(PARAMETER))
        .map(|(_, name)| name.trim_end_matches('"'))
        .collect();
    let reference = format!("resolve:ssm:{PARAMETER}");
    let read = worker.split(&reference).skip(1);
    let read: BTreeSet<&str> = read.filter_map(|rest| rest.split('}').next()).collect();
    ensure!(!read.is_empty(), "{WORKER} reads no parameter of the core");
    let missing: Vec<_> = read.difference(&made).collect();
    ensure!(missing.is_empty(), "{WORKER} reads what {CORE} doesn't make: {missing:?}");

    let imports: Vec<&str> =
        worker.lines().filter_map(|line| quoted(line, "Fn::ImportValue: !Sub \"")).collect();
    ensure!(
        !imports.is_empty(),
        "{WORKER} imports nothing: without a core it would be deployed nevertheless"
    );
    for import in imports {
        let export = format!("Export: {{ Name: !Sub \"{import}\" }}");
        ensure!(core.contains(&export), "{WORKER} imports {import}, and {CORE} doesn't export it");
    }
    Ok(())
}

/// Each alarm's dimensions are those of a metric that something emits: the service, or a resource of this template.
fn alarms(text: &str, metrics: &str) -> Result<()> {
    let resources = template::blocks(text, "Resources");
    let alarms = resources.iter().filter(|block| block.contains("Type: AWS::CloudWatch::Alarm"));
    let mut count = 0;
    for alarm in alarms {
        let name = template::title(alarm);
        let setting = |name: &str| {
            let prefix = format!("      {name}: ");
            alarm.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default()
        };
        let dimensions: Vec<(&str, &str)> = setting("Dimensions")
            .split("{ Name: ")
            .skip(1)
            .filter_map(|dimension| dimension.rsplit_once(" }")?.0.split_once(", Value: "))
            .collect();
        ensure!(!dimensions.is_empty(), "{name} has no dimensions in one line");
        let names: BTreeSet<&str> = dimensions.iter().map(|(name, _)| *name).collect();
        if setting("Namespace") == "Tickover" {
            let metric = setting("MetricName");
            let labels = labels(metrics, metric).with_context(|| format!("{name}: no metric {metric}"))?;
            let emitted = labels.into_iter().chain(["function"]).collect();
            ensure!(names == emitted, "{name} watches {names:?}, and {metric} has {emitted:?}");
        }
        for (dimension, value) in dimensions {
            let is_there = match dimension {
                "FunctionName" | "function" => value.strip_prefix("!Ref ").is_some_and(|function| {
                    resources.iter().any(|block| {
                        template::title(block) == function && block.contains("Type: AWS::Lambda::Function")
                    })
                }),
                "QueueName" => text.contains(&format!("\n      QueueName: {value}\n")),
                "TableName" => text.contains(&format!("\n      TableName: {value}\n")),
                "GlobalSecondaryIndexName" => text.contains(&format!("- IndexName: {value}\n")),
                "queue" => value == "!Ref Queue",
                "kind" | "result" => true,
                _ => false,
            };
            ensure!(is_there, "{name}: no {dimension} is {value}");
        }
        count += 1;
    }
    ensure!(count > 0, "there is no alarm");
    Ok(())
}

/// The labels with which the service records a metric.
fn labels<'a>(metrics: &'a str, metric: &str) -> Option<BTreeSet<&'a str>> {
    let line = metrics.lines().find(|line| line.ends_with(&format!("&str = \"{metric}\";")))?;
    let constant = quoted_between(line, "const ", ":")?;
    let recorded = ["counter!(", "histogram!("].into_iter().find_map(|call| {
        let (_, rest) = metrics.split_once(&format!("{call}{constant}, "))?;
        rest.lines().next()
    })?;
    let names = recorded.split("\" =>").map(|before| before.rsplit('"').next().unwrap_or_default());
    let count = recorded.matches("\" =>").count();
    Some(names.take(count).collect())
}

fn quoted<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    quoted_between(line, before, "\"")
}

fn quoted_between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    line.split_once(before)?.1.split_once(after).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_reads_only_what_the_core_makes() {
        check().unwrap();
        let [core, worker] = [CORE, WORKER].map(|file| read(file).unwrap());
        for (from, to) in [("/due-shards\"", "/shards\""), ("-worker-policy\"", "-policy\"")] {
            is_made(&core.replace(from, to), &worker).unwrap_err();
        }
    }

    #[test]
    fn what_emulators_cannot_read_is_found() {
        let core = read(CORE).unwrap();
        for construct in FORBIDDEN {
            is_plain(&format!("{core}\n  X: {construct}\n")).unwrap_err();
            is_plain(&format!("{core}\n  # {construct}\n")).unwrap();
        }
    }

    #[test]
    fn only_what_alarms_and_dashboard_use_is_written_by_default() {
        let [core, worker, metrics] = [CORE, WORKER, METRICS].map(|file| read(file).unwrap());
        essential(&[&core, &worker], &metrics).unwrap();
        let more = metrics.replace("    TICKS,\n", "    TICKS,\n    TURNS,\n");
        essential(&[&core, &worker], &more).unwrap_err();
        let less = metrics.replace("    TICKS,\n", "");
        essential(&[&core, &worker], &less).unwrap_err();
    }

    #[test]
    fn an_alarm_watches_what_is_emitted() {
        let [core, worker, metrics] = [CORE, WORKER, METRICS].map(|file| read(file).unwrap());
        for (from, to) in [
            ("{ Name: result, Value: done }", "{ Name: outcome, Value: done }"),
            ("Name: FunctionName, Value: !Ref ClaimFunction", "Name: FunctionName, Value: !Ref Nothing"),
            ("Value: !Sub \"${System}-dead-ingress\"", "Value: !Sub \"${System}-ingress-dead\""),
            ("MetricName: tickover_ticks_total", "MetricName: tickover_tocks_total"),
            ("Name: GlobalSecondaryIndexName, Value: due", "Name: GlobalSecondaryIndexName, Value: late"),
        ] {
            let changed = core.replace(from, to);
            assert_ne!(changed, core, "{from}");
            alarms(&changed, &metrics).unwrap_err();
        }
        alarms(&worker.replace("{ Name: queue, Value: !Ref Queue }", ""), &metrics).unwrap_err();
    }
}

//! Checks that what alarms and dashboards watch is emitted: each metric's namespace, name, dimensions and their values.
//!
//! Tickover's own metrics are those that a recorder gets ([`Recorded`]), those of AWS are from a table of its
//! documentation. A dimension that names a resource must name one of the same template.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};

use crate::parts::CORE;
use crate::recorded::Recorded;
use crate::watched::{self, Series, Source};
use crate::{read, template};

/// Metrics of an AWS service.
struct Service {
    namespace: &'static str,
    metrics: &'static [&'static str],
    /// The sets of dimensions that each of these metrics has.
    dimensions: &'static [&'static [&'static str]],
}

/// From the pages "Types of metrics for Lambda functions", "Available `CloudWatch` metrics for Amazon SQS" and "`DynamoDB`
/// Metrics and dimensions" of AWS's documentation.
const AWS: [Service; 3] = [
    Service {
        namespace: "AWS/Lambda",
        metrics: &["Errors", "Invocations", "RecursiveInvocationsDropped", "Throttles"],
        dimensions: &[&["FunctionName"]],
    },
    Service {
        namespace: "AWS/SQS",
        metrics: &[
            "ApproximateAgeOfOldestMessage",
            "ApproximateNumberOfMessagesVisible",
            "NumberOfMessagesDeleted",
            "NumberOfMessagesReceived",
        ],
        dimensions: &[&["QueueName"]],
    },
    Service {
        namespace: "AWS/DynamoDB",
        metrics: &[
            "ConsumedReadCapacityUnits",
            "ConsumedWriteCapacityUnits",
            "ReadThrottleEvents",
            "WriteThrottleEvents",
        ],
        dimensions: &[&["TableName"], &["GlobalSecondaryIndexName", "TableName"]],
    },
];

/// Checks each of these templates, given as its file's name and its text.
fn check(templates: &[(&str, String)], recorded: &Recorded) -> Result<()> {
    for (file, text) in templates {
        check_one(text, recorded).with_context(|| (*file).to_owned())?;
    }
    essential(templates, recorded)
}

/// The alarms and the dashboards watch exactly those of the service's metrics that are written by default.
fn essential(templates: &[(&str, String)], recorded: &Recorded) -> Result<()> {
    let mut watched = BTreeSet::new();
    for (_, text) in templates {
        let series = watched::all(text)?.into_iter();
        watched.extend(series.filter(|one| one.namespace == recorded.namespace).map(|one| one.metric));
    }
    let written = &recorded.essential;
    ensure!(watched == *written, "alarms and dashboards watch {watched:?}; written by default: {written:?}");
    Ok(())
}

fn check_one(text: &str, recorded: &Recorded) -> Result<()> {
    let series = watched::all(text)?;
    ensure!(!series.is_empty(), "it watches nothing");
    for one in series {
        is_emitted(&one, recorded)
            .and_then(|()| values_exist(&one, text, recorded))
            .with_context(|| format!("{} watches {}", one.by, one.metric))?;
    }
    Ok(())
}

/// Something emits a metric of this name with exactly these dimensions.
fn is_emitted(series: &Series, recorded: &Recorded) -> Result<()> {
    let dimensions: BTreeSet<&str> = series.dimensions.iter().map(String::as_str).collect();
    if series.namespace == recorded.namespace {
        let emitted = recorded.dimensions(&series.metric).context("the service records no such metric")?;
        ensure!(dimensions == emitted, "with {dimensions:?}, and it has {emitted:?}");
        return Ok(());
    }
    let service = AWS.iter().find(|service| service.namespace == series.namespace);
    let service = service.filter(|service| service.metrics.contains(&series.metric.as_str()));
    let sets = service.with_context(|| format!("{} has no such metric", series.namespace))?.dimensions;
    let is_known = sets.iter().any(|set| dimensions == set.iter().copied().collect());
    ensure!(is_known, "with {dimensions:?}, and it has one of {sets:?}");
    Ok(())
}

/// Each dimension's value is that of a resource of the template, or one that the service records.
fn values_exist(series: &Series, text: &str, recorded: &Recorded) -> Result<()> {
    for (dimension, value) in &series.values {
        let is_there = match (series.source, dimension.as_str()) {
            // Without quotes, a search finds all names of which this is a part, so also those of other stacks. In quotes it
            // finds only a whole name.
            (Source::Search, "function" | "FunctionName" | "QueueName") => {
                let whole = value.starts_with('"').then(|| format!("Name: !Sub {value}\n"));
                whole.map_or_else(|| value == "${System}", |whole| text.contains(&whole))
            }
            (_, "function" | "FunctionName") => is_function(value, text) || is_cores(value)?,
            (_, "QueueName") => text.contains(&format!("\n      QueueName: {value}\n")),
            (Source::Alarm, "TableName") => text.contains(&format!("\n      TableName: {value}\n")),
            // In a text of `!Sub`, which replaces it as `!Ref` does.
            (Source::Graph, "TableName") => {
                value == "${System}" && text.contains("\n      TableName: !Ref System\n")
            }
            (_, "GlobalSecondaryIndexName") => text.contains(&format!("- IndexName: {value}\n")),
            (_, "queue") => value == "!Ref Queue",
            (_, "kind" | "result") => recorded.values.contains(value),
            (_, other) => bail!("the dimension {other} is unknown"),
        };
        ensure!(is_there, "no {dimension} is {value}");
    }
    Ok(())
}

fn is_function(value: &str, text: &str) -> bool {
    value.strip_prefix("!Ref ").is_some_and(|function| {
        template::blocks(text, "Resources")
            .iter()
            .any(|block| template::title(block) == function && block.contains("Type: AWS::Lambda::Function"))
    })
}

/// Whether a function of the core has this name.
fn is_cores(value: &str) -> Result<bool> {
    let is_name = value.starts_with("!Sub ");
    Ok(is_name && read(CORE)?.contains(&format!("\n      FunctionName: {value}\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{self, QUEUE, WORKER};

    /// Replaces every occurrence in the template, which must have one.
    fn refused(file: &str, from: &str, to: &str) {
        let text = read(file).unwrap();
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let refused = check_one(&changed, &Recorded::read().unwrap());
        assert!(refused.is_err(), "{file}: {from} became {to}");
    }

    #[test]
    fn what_alarms_and_dashboards_watch_is_emitted() {
        check(&parts::all().unwrap(), &Recorded::read().unwrap()).unwrap();
    }

    #[test]
    fn an_alarm_on_nothing_is_found() {
        for (from, to) in [
            ("{ Name: result, Value: done }", "{ Name: outcome, Value: done }"),
            ("{ Name: result, Value: done }", "{ Name: result, Value: finished }"),
            ("{ Name: kind, Value: heartbeat }", "{ Name: kind, Value: heart_beat }"),
            ("Name: FunctionName, Value: !Ref ClaimFunction", "Name: FunctionName, Value: !Ref Nothing"),
            ("Name: FunctionName, Value: !Ref ClaimFunction", "Name: Function, Value: !Ref ClaimFunction"),
            ("Value: !Sub \"${System}-dead-ingress\"", "Value: !Sub \"${System}-ingress-dead\""),
            ("MetricName: tickover_ticks_total", "MetricName: tickover_tocks_total"),
            ("MetricName: Throttles", "MetricName: Throttled"),
            ("Namespace: Tickover\n", "Namespace: tickover\n"),
            ("Name: GlobalSecondaryIndexName, Value: due", "Name: GlobalSecondaryIndexName, Value: late"),
            ("Name: TableName, Value: !Ref System", "Name: TableName, Value: !Ref Table"),
        ] {
            refused(CORE, from, to);
        }
        refused(WORKER, ", { Name: queue, Value: !Ref Queue }", "");
        refused(WORKER, "{ Name: queue, Value: !Ref Queue }", "{ Name: queue, Value: !Ref System }");
        for (from, to) in [
            ("MetricName: NumberOfMessagesReceived", "MetricName: NumberOfMessagesTaken"),
            ("Value: !Sub \"${System}-gateway\"", "Value: !Sub \"${System}-gate\""),
            ("AND FILL(received, 0) == 0", ""),
            ("Id: age, ReturnData: false", "Id: age"),
            ("Namespace: Tickover,", "Namespace: AWS/SQS,"),
        ] {
            refused(QUEUE, from, to);
        }
    }

    #[test]
    fn a_graph_of_nothing_is_found() {
        for (from, to) in [
            ("{Tickover,function,queue,outcome}", "{Tickover,function,outcome}"),
            ("{Tickover,function,queue,kind}", "{Tickover,function,queue,sort}"),
            ("{AWS/SQS,QueueName} QueueName=", "{AWS/SQS,QueueName} Queue="),
            ("QueueName=${System}", "QueueName=${Queue}"),
            ("MetricName=\\\"Errors\\\"", "MetricName=Errors"),
            ("{AWS/Lambda,FunctionName}", "{AWS/Lambdas,FunctionName}"),
            ("MetricName=\\\"tickover_turn_lateness_seconds", "MetricName=\\\"tickover_turn_delay_seconds"),
            ("MetricName=\\\"Invocations", "MetricName=\\\"Calls"),
            ("\"ConsumedReadCapacityUnits\", \"TableName\"", "\"ConsumedReadCapacityUnits\", \"Table\""),
            ("\"TableName\", \"${System}\"", "\"TableName\", \"${Table}\""),
        ] {
            refused(CORE, from, to);
        }
    }

    #[test]
    fn a_search_for_a_part_of_a_name_in_quotes_is_refused() {
        let (core, recorded) = (read(CORE).unwrap(), Recorded::read().unwrap());
        for term in ["function=${System}", "FunctionName=${System}", "QueueName=${System}"] {
            let (dimension, _) = term.split_once('=').unwrap();
            refused(CORE, term, &format!("{dimension}=\\\"${{System}}\\\""));
        }
        let whole = core.replace("FunctionName=${System}", "FunctionName=\\\"${System}-tick\\\"");
        assert_ne!(whole, core);
        check_one(&whole, &recorded).unwrap();
    }

    #[test]
    fn a_metric_that_the_code_renames_is_found() {
        let core = read(CORE).unwrap();
        let refused = |what: &str, change: &dyn Fn(&mut Recorded)| {
            let mut recorded = Recorded::read().unwrap();
            change(&mut recorded);
            assert!(check_one(&core, &recorded).is_err(), "{what}");
        };
        for metric in ["tickover_ticks_total", "tickover_executions_ended_total"] {
            refused(metric, &|recorded| drop(recorded.labels.remove(metric)));
            refused(metric, &|recorded| {
                recorded.labels.insert(metric.to_owned(), ["ending".to_owned()].into());
            });
        }
        for value in ["out_of_time", "schedule_to_close"] {
            refused(value, &|recorded| assert!(recorded.values.remove(value)));
        }
        refused("the namespace", &|recorded| recorded.namespace = "Tick".to_owned());
        refused("the function", &|recorded| recorded.function = "program".to_owned());
    }

    #[test]
    fn only_what_alarms_and_dashboards_watch_is_written_by_default() {
        let templates = parts::all().unwrap();
        let mut recorded = Recorded::read().unwrap();
        recorded.essential.insert("tickover_turns_total".to_owned());
        essential(&templates, &recorded).unwrap_err();
        recorded.essential =
            recorded.essential.into_iter().filter(|name| !name.contains("turns")).skip(1).collect();
        essential(&templates, &recorded).unwrap_err();
    }
}

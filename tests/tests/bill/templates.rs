//! What a month's bill has beside each operation, counted in the templates.

use std::fs;

use tickover_service::cost::{self, Alarms};

fn template(name: &str) -> String {
    fs::read_to_string(format!("{}/../infra/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The alarms of a template without `EventsQueue`.
fn alarms(template: &str) -> Alarms {
    let alarms: Vec<&str> =
        template.split("    Type: AWS::CloudWatch::Alarm\n    Condition: ").skip(1).collect();
    assert_eq!(alarms.len(), template.matches("AWS::CloudWatch::Alarm\n").count(), "one has no condition");
    // An alarm that compares metrics is billed once for each.
    let billed = |alarm: &&str| alarm.split("\n\n").next().unwrap().matches("MetricStat: ").count().max(1);
    let with = |name: &str| -> usize {
        alarms.iter().filter(|alarm| alarm.starts_with(&format!("{name}\n"))).map(billed).sum()
    };
    let [essential, more, events] =
        [with("HasAlarms"), with("HasAllAlarms"), with("HasEventsAlarms") + with("HasAllEventsAlarms")];
    let of_classes = with("HasPrioritiesAlarms");
    let expected = if of_classes == 0 { 0 } else { cost::CLASS_QUEUES * cost::CLASS_ALARMS.essential };
    assert_eq!((of_classes, cost::CLASS_ALARMS.essential), (usize::from(expected), cost::CLASS_ALARMS.all));
    let all: usize = alarms.iter().map(billed).sum();
    assert_eq!(essential + more + events + of_classes, all, "one has another condition");
    let count = |count: usize| u16::try_from(count).unwrap();
    Alarms { essential: count(essential), all: count(essential + more) }
}

#[test]
fn the_alarms_of_the_templates_are_those_of_the_bill() {
    assert_eq!(alarms(&template("core.yaml")), cost::CORE_ALARMS);
    assert_eq!(alarms(&template("worker.yaml")), cost::WORKER_ALARMS);
}

#[test]
fn the_queues_that_lambda_polls_are_those_of_the_bill() {
    let sources = |name: &str| template(name).matches("Type: AWS::Lambda::EventSourceMapping\n").count();
    assert_eq!(sources("core.yaml"), usize::from(cost::CORE_QUEUES));
    assert_eq!(sources("worker.yaml"), usize::from(1 + cost::CLASS_QUEUES));
    let of_classes =
        template("worker.yaml").matches("EventSourceMapping\n    Condition: HasPriorities\n").count();
    assert_eq!(of_classes, usize::from(cost::CLASS_QUEUES));
}

#[test]
fn a_line_of_the_access_log_has_the_bytes_of_the_bill() {
    let template = template("core.yaml");
    let format = template
        .lines()
        .map(str::trim)
        .find(|line| line.contains("$context.path\"") && line.contains("userArn"));
    let format =
        format.unwrap().trim_start_matches("Format: ").trim_start_matches("- ").trim_start_matches('\'');
    let mut line = format.trim_end_matches('\'').to_owned();
    for (name, value) in [
        ("requestTime", "23/Nov/2026:14:28:14 +0000"),
        ("requestId", "JKJaXmPLvHcESHA="),
        ("identity.sourceIp", "203.0.113.111"),
        (
            "identity.userArn",
            "arn:aws:sts::123456789012:assumed-role/order-service-production/i-0123456789abcdef0",
        ),
        ("httpMethod", "POST"),
        ("path", "/v1/executions/order-1234567/events/shipped"),
        ("status", "201"),
        ("responseLatency", "123"),
        ("error.message", "-"),
    ] {
        let variable = format!("$context.{name}\"");
        assert!(line.contains(&variable), "{name}");
        line = line.replace(&variable, &format!("{value}\""));
    }
    assert!(!line.contains('$'), "{line}");
    let bytes = f64::from(u32::try_from(line.len()).unwrap()) + cost::LOG_LINE_BYTES;
    let billed = cost::REQUEST.log_bytes;
    assert!(bytes <= billed && billed <= bytes * 1.15, "{bytes} bytes, and the bill has {billed}");
}

#[test]
fn lambda_writes_no_lines_for_invocations_that_succeed() {
    let expected =
        "      LoggingConfig: { LogFormat: JSON, ApplicationLogLevel: TRACE, SystemLogLevel: WARN }\n";
    for name in ["core.yaml", "worker.yaml"] {
        let template = template(name);
        let functions = template.matches("Type: AWS::Lambda::Function\n").count();
        assert!(functions > 0 && template.matches(expected).count() == functions, "{name}");
    }
}

//! The last day of a deployment, which the tool and its dashboard read from `CloudWatch`.

use crate::dashboard::Dashboard;
use crate::server::{Answer, Server};
use crate::{REGION, caller, ok, run, sigv4, ssm_for};

const NO_QUEUES: &str = r#"{"queues":[]}"#;

/// The caller's variables, with `CloudWatch` at this address.
fn with<'a>(ssm: &'a Server, cloudwatch: &'a Server) -> Vec<(&'a str, &'a str)> {
    [caller(&ssm.url), vec![("AWS_ENDPOINT_URL_CLOUDWATCH", cloudwatch.url.as_str())]].concat()
}

/// A series: the number of its search, the function or queue that it is of, and its values at 08:00 and later, each five
/// minutes after the one before.
fn series(search: usize, owner: &str, values: &[f64]) -> String {
    let times: Vec<String> =
        (0..values.len()).map(|place| format!("{}.0", 1_769_846_400 + 300 * place)).collect();
    format!(
        r#"{{"Id":"m{search}","Label":"{owner}","Timestamps":[{}],"Values":{values:?},"StatusCode":"Complete"}}"#,
        times.join(",")
    )
}

/// A page of an answer, with more fields.
fn page(all: &[String], more: &str) -> Answer {
    ok(&format!(r#"{{"MetricDataResults":[{}]{more}}}"#, all.join(",")))
}

#[test]
fn a_deployments_day_is_read_from_cloudwatch_with_the_callers_credentials() {
    let first = [
        series(0, "prod-tick", &[5.0, 5.0, 5.0]),
        series(1, "prod-complete", &[7.0, 0.0, 1.0]),
        series(1, "prod-worker-mail", &[1.0]),
        // Searches for `prod` find these, too.
        series(1, "prod-again-complete", &[1_000.0]),
        series(2, "prod-complete", &[2.0]),
        series(3, "prod-tick", &[0.0, 3.0]),
    ];
    let second = [series(4, "prod-complete", &[0.0, 4.0])];
    let third = [
        series(5, "prod-claim", &[0.25, 1.5]),
        series(6, "prod-claim", &[0.75]),
        series(7, "prod-dead-work-mail", &[1_000.0]),
        series(7, "prod-ingress", &[1_000.0]),
        series(7, "prod-work-mail", &[9.0]),
        series(7, "prod-work-mail__high", &[1.0]),
        series(8, "prod-work-mail", &[2.0]),
        series(9, "prod-work-mail", &[6.0]),
    ];
    let cloudwatch =
        Server::start(vec![page(&first, r#","NextToken":"more""#), page(&second, ""), page(&third, "")]);
    let api = Server::start(vec![ok(NO_QUEUES)]);
    let ssm = ssm_for(&api);
    let dashboard = Dashboard::of(&with(&ssm, &cloudwatch), &["--read-only"]);

    let (status, day) = dashboard.send("GET", "/v1/history", "");
    let part = |at: &str, rest: &str| format!(r#"{{"at":"2026-01-31T{at}:00.000Z",{rest}}}"#);
    let parts = [
        part("08:00", r#""completed":10,"failed":0,"late_ms":750,"depth":10,"oldest_ms":2000,"running":6"#),
        part("08:05", r#""completed":0,"failed":7,"late_ms":1500,"depth":0,"oldest_ms":0,"running":0"#),
        part("08:10", r#""completed":1,"failed":0,"late_ms":0,"depth":0,"oldest_ms":0,"running":0"#),
    ];
    let all = format!(r#"{{"every":"5m","parts":[{}],"note":"From CloudWatch, "#, parts.join(","));
    assert!(status == 200 && day.starts_with(&all), "{status} {day}\n{all}");
    assert!(!day.contains("not all"), "{day}");

    let asked = cloudwatch.requests();
    assert_eq!(asked.len(), 3);
    for request in &asked {
        sigv4::check(request, "monitoring", REGION);
        assert_eq!(request.header("x-amz-target"), "GraniteServiceVersion20100801.GetMetricData");
        assert_eq!(request.header("content-type"), "application/x-amz-json-1.0");
    }
    let body = |place: usize| String::from_utf8(asked[place].body.clone()).expect("text");
    let searches = [
        r#"SEARCH('{Tickover,function,result} function=\"prod-tick\" MetricName=\"tickover_ticks_total\"', 'Sum', 300)"#,
        r#"SEARCH('{Tickover,function,queue,outcome} function=prod outcome=(\"failed\" OR \"timed_out\") MetricName=\"tickover_tasks_ended_total\"', 'Sum', 300)"#,
        r#"SEARCH('{AWS/SQS,QueueName} QueueName=prod MetricName=\"ApproximateAgeOfOldestMessage\"', 'Maximum', 300)"#,
        r#""Label":"${PROP('Dim.QueueName')}""#,
    ];
    for (place, search) in [0, 0, 2, 2].into_iter().zip(searches) {
        assert!(body(place).contains(search), "{search}\n{}", body(place));
        assert_eq!(body(place).matches("SEARCH(").count(), 5, "CloudWatch takes no more at a time");
    }
    assert!(!body(0).contains("NextToken") && body(1).contains(r#""NextToken":"more""#), "{}", body(1));

    // The newest part alone is asked for later, and is there already.
    let (status, later) = dashboard.send("GET", "/v1/history?from=2026-01-31T08%3A10%3A00.000Z", "");
    assert!(
        status == 200 && later.starts_with(&format!(r#"{{"every":"5m","parts":[{}],"#, parts[2])),
        "{later}"
    );
    assert_eq!(cloudwatch.requests().len(), 3);
    let (status, wrong) = dashboard.send("GET", "/v1/history?from=yesterday", "");
    assert!(status == 400 && wrong.contains("invalid_request"), "{status} {wrong}");
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn a_refusal_of_the_metrics_is_told_in_its_own_words_and_the_rest_goes_on() {
    let said =
        "User: arn:aws:iam::123456789012:user/ada is not authorized to perform: cloudwatch:GetMetricData";
    let refused = (400, "AccessDenied", format!(r#"{{"message":"{said}"}}"#));
    let cloudwatch = Server::start(vec![refused]);
    let api = Server::start(vec![ok(NO_QUEUES)]);
    let ssm = ssm_for(&api);
    let dashboard = Dashboard::of(&with(&ssm, &cloudwatch), &[]);
    let (status, problem) = dashboard.send("GET", "/v1/history", "");
    assert!(status == 403 && problem.contains(r#""code":"access_denied""#), "{status} {problem}");
    assert!(
        problem.contains(said) && problem.contains("its policy needs cloudwatch:GetMetricData"),
        "{problem}"
    );
    assert_eq!(cloudwatch.requests().len(), 1);
    assert_eq!(dashboard.send("GET", "/v1/queues", ""), (200, NO_QUEUES.to_owned()));

    let ended = run(&["--stack", "prod", "history"], &with(&ssm, &cloudwatch));
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn a_metric_that_is_absent_counts_nothing_and_one_that_was_not_given_is_named() {
    let cloudwatch = Server::start(vec![page(&[series(0, "prod-tick", &[5.0])], "")]);
    let api = Server::start(vec![ok(NO_QUEUES)]);
    let ssm = ssm_for(&api);
    let ended = run(&["--stack", "prod", "history", "--queue", "mail", "--json"], &with(&ssm, &cloudwatch));
    let idle = r#"{"at":"2026-01-31T08:00:00.000Z","completed":0,"failed":0,"late_ms":0,"depth":0,"oldest_ms":0,"running":0}"#;
    assert_eq!((ended.status, ended.stdout.trim_end()), (Some(0), idle), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("From CloudWatch") && !ended.stderr.contains("not all"),
        "{}",
        ended.stderr
    );
    let body: String =
        cloudwatch.requests().iter().map(|asked| String::from_utf8_lossy(&asked.body).into_owned()).collect();
    let queue = r#"QueueName=(\"prod-work-mail\" OR \"prod-work-mail__low\" OR \"prod-work-mail__high\")"#;
    assert!(body.contains(queue) && body.contains(r#"function=prod queue=\"mail\" outcome"#), "{body}");

    let failed = series(3, "prod-tick", &[]).replace("Complete", "InternalError");
    let many = r#","Messages":[{"Code":"MaxMetricsExceeded","Value":"too many"}]"#;
    let cloudwatch = Server::start(vec![page(&[failed], many)]);
    let ended = run(&["--stack", "prod", "history"], &with(&ssm, &cloudwatch));
    let missing = "This is not all. CloudWatch says: MaxMetricsExceeded: too many; tickover_tasks_ended_total: InternalError.";
    assert!(ended.status == Some(0) && ended.stderr.contains(missing), "{}", ended.stderr);
}

//! The routes of the HTTP API in `infra/core.yaml`, by which calls can be allowed apart.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;

use serde_json::Value;
use tickover_api::OPERATORS_ROUTES;

use crate::read;

/// The keys of the routes that need this scope.
fn routes(template: &str, scope: &str) -> BTreeSet<String> {
    let routes = template.split("    Type: AWS::ApiGatewayV2::Route\n").skip(1);
    let routes = routes.filter_map(|route| {
        let setting = |name: &str| route.lines().find_map(|line| line.trim().strip_prefix(name));
        let expected = format!("!If [Has{scope}, [!Ref Jwt{scope}], !Ref \"AWS::NoValue\"]");
        (setting("AuthorizationScopes: ")? == expected).then(|| setting("RouteKey: ").unwrap())
    });
    routes.map(|key| key.trim_matches('"').to_owned()).collect()
}

/// Whether a call is an operator's, by the router's own list.
fn is_an_operators(method: &str, path: &str) -> bool {
    OPERATORS_ROUTES.contains(&format!("{} {path}", method.to_uppercase()).as_str())
}

/// What makes a call an operator's: it steers work of others, also of many at once, or changes a cron, a limit, or what
/// counts for all tasks of a kind.
fn should_be_an_operators(method: &str, path: &str) -> bool {
    let steers = ["terminate", "pause", "resume", "restart", "rerun", "retry"];
    method != "get"
        && (["/v1/crons", "/v1/limits", "/v1/operations"].iter().any(|all| path.starts_with(all))
            || path.contains("/kinds/")
            || steers.iter().any(|call| path.ends_with(&format!("/{call}"))))
}

/// All calls of the API, each as its method in small letters and its path.
fn calls() -> Vec<(String, String)> {
    let api: Value = serde_json::from_str(&read("shared/api/openapi.json").unwrap()).unwrap();
    let paths = api["paths"].as_object().unwrap().iter();
    let calls = paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone())).collect::<Vec<_>>()
    });
    calls.collect()
}

/// Whether a pattern of IAM, in which `*` is any text, fits the text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|text| {
            (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| fits(rest, text)))
        }),
    }
}

#[test]
fn reads_operators_calls_and_all_others_have_routes_of_their_own() {
    let template = read("infra/core.yaml").unwrap();
    let mut operators = BTreeSet::new();
    for (method, path) in calls() {
        assert_eq!(
            is_an_operators(&method, &path),
            should_be_an_operators(&method, &path),
            "{method} {path}"
        );
        if is_an_operators(&method, &path) {
            operators.insert(format!("{} {path}", method.to_uppercase()));
        }
        assert!(path.starts_with("/v1/") || method == "get", "no route for reads has {path}");
    }
    assert_eq!(operators.len(), OPERATORS_ROUTES.len(), "one isn't in the document");
    assert_eq!(routes(&template, "OperatorScope"), operators);
    // A monitor needs no right to change anything.
    let reads = ["GET /healthz", "GET /v1/{proxy+}"].map(str::to_owned);
    assert_eq!(routes(&template, "ReadScope"), BTreeSet::from(reads));
    assert_eq!(routes(&template, "WriteScope"), BTreeSet::from(["$default".to_owned()]));
    let all = template.matches("Type: AWS::ApiGatewayV2::Route\n").count();
    assert_eq!(all, operators.len() + 5, "one has no scope");
    let guarded = "      AuthorizationType: !If [IsJwt, JWT, !If [IsOpen, NONE, AWS_IAM]]\n";
    let open = [
        ("CallbackRoute", "HasCallbacks", "POST /v1/callbacks/{token}/{call}"),
        ("PreflightRoute", "HasPreflight", "OPTIONS /{proxy+}"),
    ];
    assert_eq!(template.matches(guarded).count(), all - open.len(), "only these are open: {open:?}");
    assert_eq!(template.matches("      AuthorizationType: NONE\n").count(), open.len());
    for (name, condition, key) in open {
        let route = template.split(&format!("  {name}:\n")).nth(1).unwrap();
        let start = format!("Type: AWS::ApiGatewayV2::Route\n    Condition: {condition}\n");
        assert!(route.trim_start().starts_with(&start), "{name}");
        let (route, _) = route.split_once("\n\n").unwrap();
        assert!(route.contains(&format!("RouteKey: \"{key}\"")) && route.contains("NONE"), "{route}");
    }
}

#[test]
fn the_guides_policy_denies_each_operators_call_and_no_other_change() {
    let guide = read("infra/SECURITY.md").unwrap();
    let policy = guide.split("```json\n").find(|block| block.contains("\"Deny\"")).unwrap();
    let policy: Value = serde_json::from_str(policy.split("```").next().unwrap()).unwrap();
    let denied = policy[1]["Resource"].as_array().unwrap();
    assert_eq!(policy[1]["Effect"], "Deny");
    for (method, path) in calls().into_iter().filter(|(method, _)| method != "get") {
        let resource = format!(
            "arn:aws:execute-api:REGION:ACCOUNT:API-ID/$default/{}{}",
            method.to_uppercase(),
            path.replace(['{', '}'], "")
        );
        let is_denied = denied.iter().any(|pattern| fits(pattern.as_str().unwrap(), &resource));
        assert_eq!(is_denied, is_an_operators(&method, &path), "{method} {path}");
    }
}

#[test]
fn pages_of_another_origin_may_sign_their_calls() {
    let template = read("infra/core.yaml").unwrap();
    let allowed: Vec<&str> = template
        .lines()
        .filter_map(|line| line.split_once("AllowHeaders: ["))
        .map(|(_, list)| list)
        .collect();
    assert_eq!(allowed.len(), 2, "the HTTP API and the function URL");
    for list in allowed {
        for header in
            ["authorization", "content-type", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"]
        {
            assert!(list.trim_end_matches(']').split(", ").any(|name| name == header), "{header}: {list}");
        }
    }
}

#[test]
fn the_alarm_of_missing_ticks_is_silent_until_there_was_a_tick() {
    let template = read("infra/core.yaml").unwrap();
    let alarm = template.split("  MissingTicksAlarm:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // A new alarm is in the state INSUFFICIENT_DATA, and only a change of the state notifies.
    assert!(alarm.contains("TreatMissingData: missing\n"), "{alarm}");
    let notifies =
        "InsufficientDataActions: !If [HasAlarmTopic, [!Ref AlarmTopicArn], !Ref \"AWS::NoValue\"]";
    assert!(alarm.contains(notifies), "{alarm}");
}

#[test]
fn callers_without_credentials_have_a_throttle_of_their_own_and_no_function_url() {
    let template = read("infra/core.yaml").unwrap();
    let open = template.split("  CallbackRoute:\n").nth(1).unwrap();
    let key = open.lines().find_map(|line| line.trim().strip_prefix("RouteKey: ")).unwrap();
    let settings = template.split("      RouteSettings: !If\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let limits = "{ ThrottlingBurstLimit: !Ref CallbackBurst, ThrottlingRateLimit: !Ref CallbackRate }";
    assert!(
        settings.contains("- HasCallbacks\n") && settings.contains(&format!("- {key}: {limits}")),
        "{settings}"
    );

    let rule = template.split("  FunctionUrlsAreNotOpen:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert!(rule.starts_with("    RuleCondition: !Equals [!Ref ApiKind, FunctionUrl]\n"), "{rule}");
    assert!(
        rule.contains("Assert: !Not [!Equals [!Ref Authorization, UNAUTHENTICATED-anyone-may-call]]"),
        "{rule}"
    );
    let url = template.split("    Type: AWS::Lambda::Url\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert!(url.contains("      AuthType: AWS_IAM\n"), "{url}");
    assert!(!template.contains("lambda:InvokeFunctionUrl"), "nobody gets the permission from the template");
}

#[test]
fn the_access_log_has_the_subject_and_the_client_and_only_with_callbacks_no_path() {
    let template = read("infra/core.yaml").unwrap();
    let settings = template.split("      AccessLogSettings:\n").nth(1).unwrap();
    let formats: Vec<Value> = settings
        .lines()
        .take_while(|line| !line.contains("DefaultRouteSettings"))
        .filter_map(|line| line.trim().strip_prefix("- '")?.strip_suffix('\''))
        .map(|format| serde_json::from_str(format).unwrap())
        .collect();
    let (subject, principal) = ("$context.authorizer.claims.sub", "$context.identity.userArn");
    let (masked, path) = ("$context.routeKey", "$context.path");
    let said: Vec<_> =
        formats.iter().map(|one| (one["caller"].as_str().unwrap(), one["path"].as_str().unwrap())).collect();
    assert_eq!(said, [(subject, masked), (subject, path), (principal, masked), (principal, path)]);
    for format in &formats[..2] {
        assert_eq!(format["client"], "$context.authorizer.claims.client_id");
        assert_eq!(format["azp"], "$context.authorizer.claims.azp");
    }
    // What the access log lacks with callbacks is in the gateway's own lines.
    let directive = format!("${{LogLevel}},{}=debug", "tickover_api::layers");
    assert!(
        template.contains(&format!("TICKOVER_LOG: !If [HasCallbacks, !Sub \"{directive}\", !Ref LogLevel]"))
    );
}

//! The routes of the HTTP API in `infra/core.yaml`, by which calls can be allowed apart.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

fn file(path: &str) -> String {
    fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

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

/// Whether a call is an operator's: it steers work of others, also of many at once, or changes a cron.
fn is_an_operators(method: &str, path: &str) -> bool {
    let steers = ["terminate", "pause", "resume", "restart", "rerun", "retry"];
    method != "get"
        && (["/v1/crons", "/v1/limits", "/v1/operations"].iter().any(|all| path.starts_with(all))
            || steers.iter().any(|call| path.ends_with(&format!("/{call}"))))
}

#[test]
fn reads_operators_calls_and_all_others_have_routes_of_their_own() {
    let template = file("infra/core.yaml");
    let api: Value = serde_json::from_str(&file("shared/api/openapi.json")).unwrap();
    let mut operators = BTreeSet::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            if is_an_operators(method, path) {
                operators.insert(format!("{} {path}", method.to_uppercase()));
            }
            assert!(path.starts_with("/v1/") || method == "get", "no route for reads has {path}");
        }
    }
    assert!(operators.len() > 10, "{operators:?}");
    assert_eq!(routes(&template, "OperatorScope"), operators);
    assert_eq!(routes(&template, "ReadScope"), BTreeSet::from(["GET /v1/{proxy+}".to_owned()]));
    assert_eq!(routes(&template, "WriteScope"), BTreeSet::from(["$default".to_owned()]));
    let all = template.matches("Type: AWS::ApiGatewayV2::Route\n").count();
    assert_eq!(all, operators.len() + 4, "one has no scope");
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

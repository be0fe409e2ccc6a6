//! The tool with a deployment on AWS: real processes, against servers that answer as AWS does.
#![expect(clippy::expect_used, reason = "a test's helpers may fail it")]

mod dashboard;
mod metrics;
mod server;
mod sigv4;

use std::process::Command;

use server::{Answer, Server};

const KEY_ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const REGION: &str = "eu-west-1";
const NO_TASKS: &str = r#"{"tasks":[]}"#;

/// How a process ended.
struct Ended {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

/// The tool with these variables, and no others that concern AWS.
fn tool(args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_tickover"));
    tool.env_clear().args(args);
    tool.envs([
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]);
    tool.envs(variables.iter().copied());
    tool
}

/// Runs it to its end.
fn run(args: &[&str], variables: &[(&str, &str)]) -> Ended {
    let output = tool(args, variables).output().expect("a process");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { status: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// The variables of a caller with keys, for whom SSM is at this address.
fn caller(ssm: &str) -> Vec<(&str, &str)> {
    vec![
        ("AWS_ACCESS_KEY_ID", KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", "a/session+token="),
        ("AWS_REGION", REGION),
        ("AWS_ENDPOINT_URL_SSM", ssm),
    ]
}

/// SSM's answer for the stack `prod`, with its API at this address.
fn stack(url: &str, version: &str) -> Answer {
    let parameter =
        |name: &str, value: &str| format!(r#"{{"Name":"/tickover/prod/{name}","Value":"{value}"}}"#);
    let found = [parameter("version", version), parameter("api-url", url)].join(",");
    (200, "", format!(r#"{{"Parameters":[{found}],"InvalidParameters":[]}}"#))
}

/// The stack `prod`, of the tool's own version.
fn ssm_for(api: &Server) -> Server {
    Server::start(vec![stack(&api.url, env!("CARGO_PKG_VERSION"))])
}

fn ok(body: &str) -> Answer {
    (200, "", body.to_owned())
}

#[test]
fn a_stack_is_found_by_its_name_and_each_call_to_it_is_signed() {
    let api = Server::start(vec![ok(NO_TASKS)]);
    let ssm = ssm_for(&api);
    let ended = run(&["--stack", "prod", "list", "--queue", "a:b"], &caller(&ssm.url));
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);

    let [asked] = &ssm.requests()[..] else { panic!("one question") };
    sigv4::check(asked, "ssm", REGION);
    assert_eq!(asked.header("x-amz-target"), "AmazonSSM.GetParameters");
    assert_eq!(asked.body, br#"{"Names":["/tickover/prod/api-url","/tickover/prod/version"]}"#);

    let [call] = &api.requests()[..] else { panic!("one call") };
    sigv4::check(call, "execute-api", REGION);
    assert!(call.target.starts_with("/v1/tasks?") && call.target.contains("queue=a%3Ab"), "{}", call.target);
    assert_eq!(call.header("x-amz-security-token"), "a/session+token=");
}

#[test]
fn a_call_with_a_body_and_an_id_with_a_colon_is_signed_as_it_is_sent() {
    let refused = r#"{"code":"not_found","detail":"there is no task with this id"}"#;
    let api = Server::start(vec![(404, "", refused.to_owned())]);
    let ssm = ssm_for(&api);
    let ended = run(&["cancel", "mail:7", "--stack", "prod", "--region", "us-east-2"], &caller(&ssm.url));
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("not_found"), "{}", ended.stderr);
    sigv4::check(&ssm.requests()[0], "ssm", "us-east-2");
    let [call] = &api.requests()[..] else { panic!("one call") };
    assert_eq!((call.method.as_str(), call.target.as_str()), ("POST", "/v1/tasks/mail%3A7/cancel"));
    assert!(!call.body.is_empty());
    sigv4::check(call, "execute-api", "us-east-2");
}

#[test]
fn a_worker_signs_its_calls_and_signs_each_repeated_one_again() {
    let busy = || (503, "", r#"{"code":"unavailable","detail":"not now"}"#.to_owned());
    let task = r#"{"id":"mail:7","kind":"mail","attempt":1,"lease":"AXx","lease_expires_at":"2999-01-01T00:00:00Z"}"#;
    let claimed = ok(&format!(r#"{{"tasks":[{task}]}}"#));
    let gone = (404, "", r#"{"code":"not_found","detail":"it is gone"}"#.to_owned());
    let api = Server::start(vec![busy(), claimed, busy(), gone]);
    let ssm = ssm_for(&api);
    // The command's own calls go to the same endpoint, and not to a stack.
    let script = r#"test -z "$TICKOVER_STACK" && echo "\"$TICKOVER_ENDPOINT\"""#;
    let args = ["work", "mail", "--max-tasks", "1", "--heartbeat", "0", "--", "/bin/sh", "-c", script];
    let ended = run(&args, &[&caller(&ssm.url)[..], &[("TICKOVER_STACK", "prod")]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let calls = api.requests();
    let targets: Vec<&str> = calls.iter().map(|call| call.target.as_str()).collect();
    let (claim, complete) = ("/v1/queues/mail/claim", "/v1/tasks/mail%3A7/complete");
    assert_eq!(targets, [claim, claim, complete, complete], "{}", ended.stderr);
    for call in &calls {
        sigv4::check(call, "execute-api", REGION);
    }
    let report = String::from_utf8_lossy(&calls[3].body).into_owned();
    assert!(report.contains(&api.url), "{report}");
}

#[test]
fn credentials_come_from_a_container_too() {
    let expires_at = "2999-01-01T00:00:00Z";
    let body = format!(
        r#"{{"AccessKeyId":"{KEY_ID}","SecretAccessKey":"{SECRET}","Token":"t","Expiration":"{expires_at}"}}"#
    );
    let container = Server::start(vec![ok(&body)]);
    let api = Server::start(vec![ok(NO_TASKS)]);
    let ssm = ssm_for(&api);
    let address = format!("{}/credentials", container.url);
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", address.as_str()),
        ("AWS_REGION", REGION),
        ("AWS_ENDPOINT_URL", &ssm.url),
        // A source of credentials is never asked through a proxy.
        ("HTTP_PROXY", "http://127.0.0.1:1"),
    ];
    let ended = run(&["--stack", "prod", "list"], &variables);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_eq!(container.requests().len(), 1);
    let [call] = &api.requests()[..] else { panic!("one call") };
    assert_eq!(call.header("x-amz-security-token"), "t");
    sigv4::check(call, "execute-api", REGION);
}

#[test]
fn a_stack_of_another_version_is_called_with_a_warning() {
    let api = Server::start(vec![ok(NO_TASKS)]);
    let ssm = Server::start(vec![stack(&api.url, "9.4.2")]);
    let ended = run(&["--stack", "prod", "list"], &caller(&ssm.url));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let warning = format!(
        "warning: the stack `prod` runs Tickover 9.4.2, and this tool is {}",
        env!("CARGO_PKG_VERSION")
    );
    assert!(ended.stderr.starts_with(&warning), "{}", ended.stderr);
}

#[test]
fn each_reason_why_a_stack_is_not_found_says_what_to_do() {
    let refused = |error_type: &str| (400, "", format!(r#"{{"__type":"{error_type}","message":"no"}}"#));
    let none = r#"{"Parameters":[],"InvalidParameters":["/tickover/prod/api-url","/tickover/prod/version"]}"#;
    let no_api = r#"{"Parameters":[{"Name":"/tickover/prod/version","Value":"0.1.0"}]}"#;
    for (answer, wanted) in [
        (ok(none), "no system `prod` in region eu-west-1"),
        (ok(no_api), "deploy it with `ApiKind=HttpApi`"),
        (refused("ParameterNotFound"), "no system `prod` in region eu-west-1"),
        (refused("com.amazonaws.ssm#AccessDeniedException"), "its policy needs ssm:GetParameters"),
        (refused("ExpiredTokenException"), "log in again (`aws sso login`)"),
        (refused("UnrecognizedClientException"), "aws sts get-caller-identity"),
        ((400, "InvalidSignatureException", String::new()), "this machine's clock"),
        ((502, "", "<html>".to_owned()), "HTTP status 502"),
        (ok("<html>"), "an answer that can't be read"),
        (stack("ftp://x", "0.1.0"), "expected an http or https address"),
    ] {
        let ssm = Server::start(vec![answer]);
        let ended = run(&["--stack", "prod", "list"], &caller(&ssm.url));
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(wanted), "{wanted}: {}", ended.stderr);
    }
}

#[test]
fn refused_calls_say_what_to_do_by_their_type_and_not_by_their_text() {
    let text = r#"{"message":"The security token included in the request is expired"}"#;
    for (answer, wanted, unwanted) in [
        (
            (403, "ExpiredTokenException", text),
            "error: expired_credentials: the AWS credentials have expired",
            "help",
        ),
        ((403, "AccessDeniedException", text), "its policy needs execute-api:Invoke", "have expired:"),
        ((403, "", text), "help: the call was signed", "have expired:"),
        ((403, "", r#"{"message":"Forbidden"}"#), "help: the call was signed", "have expired:"),
    ] {
        let (status, error_type, body) = answer;
        let api = Server::start(vec![(status, error_type, body.to_owned())]);
        let ssm = ssm_for(&api);
        let ended = run(&["--stack", "prod", "list"], &caller(&ssm.url));
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(wanted) && !ended.stderr.contains(unwanted), "{}", ended.stderr);
    }
}

#[test]
fn a_token_is_sent_instead_of_a_signature() {
    let refused = |status, text: &str| (status, "", format!(r#"{{"message":"{text}"}}"#));
    let api = Server::start(vec![ok(NO_TASKS), refused(401, "Unauthorized"), refused(403, "Forbidden")]);
    let work = ["work", "mail", "--", "true"];
    for (command, status) in [(&["list"][..], 0), (&["list"], 1), (&["list"], 1), (&work, 1)] {
        // No credentials are needed for an endpoint whose address is known.
        let endpoint = ["--endpoint", &api.url];
        let ended = run(&[&endpoint, command].concat(), &[("TICKOVER_TOKEN", "sesame")]);
        assert_eq!(ended.status, Some(status), "{}", ended.stderr);
        assert!(!ended.stderr.contains("sesame"));
        let help = "help: the token is refused: it may have expired, or be for another audience";
        assert_eq!(ended.stderr.contains(help), status == 1, "{}", ended.stderr);
    }
    let ssm = ssm_for(&api);
    run(&["--stack", "prod", "--token", "sesame", "list"], &caller(&ssm.url));
    let calls = api.requests();
    assert_eq!(calls.len(), 5);
    for call in calls {
        assert_eq!(call.header("authorization"), "Bearer sesame");
        assert!(!call.headers.iter().any(|(name, _)| name.starts_with("x-amz-")), "{call:?}");
    }
}

#[test]
fn calls_are_not_signed_if_the_caller_wants_that() {
    let refused = (403, "", r#"{"message":"Forbidden"}"#.to_owned());
    // As a proxy, the server gets the calls to a host on AWS.
    let proxy = Server::start(vec![ok(NO_TASKS), refused]);
    let on_aws = "http://a1.execute-api.eu-west-1.amazonaws.com";
    for status in [0, 1] {
        let args = ["--endpoint", on_aws, "--no-sign-request", "list"];
        let ended = run(&args, &[("HTTP_PROXY", &proxy.url)]);
        assert_eq!(ended.status, Some(status), "{}", ended.stderr);
        let help = "help: the call was not signed: leave --no-sign-request out";
        assert_eq!(ended.stderr.contains(help), status == 1, "{}", ended.stderr);
    }
    // The stack's address is still asked for with a signature.
    let api = Server::start(vec![ok(NO_TASKS)]);
    let ssm = ssm_for(&api);
    let ended = run(&["--stack", "prod", "list", "--no-sign-request"], &caller(&ssm.url));
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    sigv4::check(&ssm.requests()[0], "ssm", REGION);
    let calls = [proxy.requests(), api.requests()].concat();
    assert_eq!(calls.len(), 3);
    assert!(calls[0].target.starts_with(on_aws), "{:?}", calls[0]);
    for call in calls {
        let is_secret = |name: &str| name == "authorization" || name.starts_with("x-amz-");
        assert!(!call.headers.iter().any(|(name, _)| is_secret(name)), "{call:?}");
    }
}

#[test]
fn without_credentials_or_a_region_nothing_is_called() {
    let ssm = Server::start(vec![ok("")]);
    let region = ("AWS_REGION", REGION);
    let address = ("AWS_ENDPOINT_URL", ssm.url.as_str());
    let on_aws = "https://a1.execute-api.eu-west-1.amazonaws.com";
    for (args, variables, wanted) in [
        (vec!["--stack", "prod"], vec![region, address], "no AWS credentials are found: set AWS_PROFILE"),
        (vec!["--endpoint", on_aws], vec![], "no AWS credentials are found"),
        (vec!["--stack", "prod"], vec![address], "or give --region"),
        (
            vec!["--stack", "prod", "--profile", "gone"],
            vec![region, address],
            "with the AWS profile `gone`: no",
        ),
        (vec!["--stack", "prod"], vec![region, address, ("AWS_USE_FIPS_ENDPOINT", "1")], "FIPS"),
    ] {
        let ended = run(&[&args[..], &["list"]].concat(), &variables);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(wanted), "{wanted}: {}", ended.stderr);
    }
    assert_eq!(ssm.requests().len(), 0);
}

#[test]
fn a_region_or_a_profile_without_a_deployment_on_aws_is_refused() {
    let api = Server::start(vec![ok("{}")]);
    let on_aws = "https://a1.execute-api.eu-west-1.amazonaws.com";
    for (args, wanted) in [
        (vec!["--region", REGION, "--endpoint", &api.url], "--region has no effect with the endpoint http"),
        (vec!["--profile", "work"], "--profile has no effect"),
        (vec!["--profile", "work", "--endpoint", on_aws, "--token", "t"], "called without a signature"),
    ] {
        let ended = run(&[&args[..], &["list"]].concat(), &[]);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(wanted) && ended.stderr.contains("--stack"), "{}", ended.stderr);
    }
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn an_sso_session_that_has_expired_says_how_to_log_in() {
    let home = tempfile::tempdir().expect("a folder");
    let cache = home.path().join(".aws/sso/cache");
    std::fs::create_dir_all(&cache).expect("a folder");
    let config = "[profile work]\nsso_session = dev\nsso_account_id = 123456789012\nsso_role_name = admin\n\
                  [sso-session dev]\nsso_region = eu-west-1\nsso_start_url = https://d-1.awsapps.com/start\n";
    std::fs::write(home.path().join(".aws/config"), config).expect("a file");
    let token = r#"{"accessToken":"a","expiresAt":"2020-01-01T00:00:00Z","region":"eu-west-1"}"#;
    // The name is the SHA-1 of the session's name.
    let name = "34c6fceca75e456f25e7e99531e2425c6c1de443.json";
    std::fs::write(cache.join(name), token).expect("a file");
    let folder = home.path().to_str().expect("a path");
    let file = format!("{folder}/.aws/config");
    let variables = [("HOME", folder), ("AWS_CONFIG_FILE", &file), ("AWS_REGION", REGION)];
    let ended = run(&["--stack", "prod", "--profile", "work", "list"], &variables);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("log in again: `aws sso login`"), "{}", ended.stderr);
    assert!(ended.stderr.contains("the SSO token has expired"), "{}", ended.stderr);
}

#[test]
fn a_stack_and_an_endpoint_are_not_given_together() {
    let both = run(&["--stack", "prod", "--endpoint", "http://127.0.0.1:1", "list"], &[]);
    let by_variable = run(&["--stack", "prod", "list"], &[("TICKOVER_ENDPOINT", "http://127.0.0.1:1")]);
    for ended in [both, by_variable] {
        assert_eq!(ended.status, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("cannot be used with"), "{}", ended.stderr);
    }
    assert_eq!(run(&["--stack", "a/b", "list"], &[]).status, Some(2));
}

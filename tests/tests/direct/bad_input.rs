//! Direct workers that can't start: each says why, and what to do.

use tickover_tests::emulator::{endpoint, unique};
use tickover_tests::process::{Ended, Process};

use crate::scene::{Scene, parameter, parameters, tool};

/// Runs a direct worker with these options, and with these variables instead of the usual ones.
async fn run(options: &[&str], variables: &[(&str, &str)], without: &[&str]) -> Ended {
    let mut tool =
        tool(&[options, &["work", "emails", "--direct", "--idle-exit", "0", "--", "cat"]].concat());
    for name in without {
        tool.env_remove(name);
    }
    tool.envs(variables.iter().copied());
    Process::from_command(&mut tool).expect("a worker").ended().await.expect("an end")
}

#[tokio::test]
async fn a_direct_worker_that_can_not_start_says_what_to_do() {
    let scene = Scene::start().await;
    let stack = ["--stack", scene.system.as_str()];
    let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

    // A stack that says its version only, as one without `infra/core.yaml` does.
    let other = unique("dir");
    parameter(&other, "version", "0.1.0").await;
    // A core whose table was deleted.
    let empty = unique("dir");
    parameters(&empty, env!("CARGO_PKG_VERSION")).await;
    // A setting that no deployment has.
    let odd = unique("dir");
    parameters(&odd, env!("CARGO_PKG_VERSION")).await;
    parameter(&odd, "due-shards", "many").await;

    let gone = format!("no system `{}` in region eu-west-1", scene.system);
    let policy = format!("`tickover-{empty}-worker-policy`");
    let closed = "http://127.0.0.1:1";
    for (options, variables, without, wanted) in [
        (vec![], vec![], vec![], vec!["--direct needs the name of a stack", "TICKOVER_STACK"]),
        (stack.to_vec(), vec![], keys.to_vec(), vec!["no AWS credentials are found: set AWS_PROFILE"]),
        (stack.to_vec(), vec![], vec!["AWS_REGION"], vec!["no AWS region is set", "or give --region"]),
        ([&stack[..], &["--region", "eu-west-1"]].concat(), vec![], vec![], vec![&gone, "set AWS_REGION"]),
        (
            [&stack[..], &["--profile", "gone"]].concat(),
            vec![],
            keys.to_vec(),
            vec!["the AWS profile `gone`"],
        ),
        (
            [&stack[..], &["--token", "sesame"]].concat(),
            vec![],
            vec![],
            vec!["need signed calls: leave --token"],
        ),
        ([&stack[..], &["--no-sign-request"]].concat(), vec![], vec![], vec!["--no-sign-request out"]),
        (vec!["--stack", &other], vec![], vec![], vec!["doesn't say where its table", "`infra/core.yaml`"]),
        (vec!["--stack", &empty], vec![], vec![], vec!["can't be read", "no such table", &policy]),
        (vec!["--stack", &odd], vec![], vec![], vec!["TICKOVER_DUE_SHARDS must be a number"]),
        (
            stack.to_vec(),
            vec![("AWS_ENDPOINT_URL", closed)],
            vec![],
            vec!["no answer from http://127.0.0.1:1"],
        ),
        (
            stack.to_vec(),
            vec![("AWS_ENDPOINT_URL_SSM", &endpoint()), ("AWS_ENDPOINT_URL_DYNAMODB", closed)],
            vec![],
            vec!["can't be read", "dispatch failure"],
        ),
    ] {
        let ended = run(&options, &variables, &without).await;
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), ""), "{options:?}: {ended:?}");
        for wanted in wanted {
            assert!(ended.stderr.contains(wanted), "{options:?}: {wanted}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("sesame"), "{}", ended.stderr);
    }
}

//! The life of a system of its own: a first deployment that fails, the same repeated, a second one, the deletion.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::system::{name, until};
use crate::target::{Check, Target, aws, python, sam};

/// The variable in which `cargo xtask e2e --account` passes the core's parameters beside its name.
const PARAMETERS: &str = "TICKOVER_TEST_PARAMETERS";
/// A key that no account has.
const NO_KEY: &str = "00000000-0000-0000-0000-000000000000";

/// SQS lets nobody create a queue with the name of one that was deleted in the last minute.
const NAMES_ARE_FREE_AFTER: Duration = Duration::from_mins(1);

/// A core and a worker beside the shared system.
struct Life {
    system: String,
    /// Where SAM's bucket has the archives, so that the clean-up finds them.
    archives: String,
    core: Vec<String>,
}

impl Life {
    fn new() -> Self {
        let parameters = std::env::var(PARAMETERS)
            .unwrap_or_else(|error| panic!("{PARAMETERS}: {error}. Run `cargo xtask e2e --account`"));
        let system = format!("{}-again", name());
        let core = parameters.split(' ').map(str::to_owned).chain([format!("System={system}")]).collect();
        Self { system, archives: name(), core }
    }

    /// The worker's parameters: those that the core has, too.
    fn worker(&self) -> Vec<String> {
        let has = |parameter: &&String| {
            ["Architecture=", "MaxConcurrency=", "System="].iter().any(|name| parameter.starts_with(name))
        };
        self.core.iter().filter(has).cloned().collect()
    }

    fn stack(&self, environment: &str) -> String {
        if environment == "core" { self.system.clone() } else { format!("{}-worker-orders", self.system) }
    }

    /// Deploys what `cargo xtask e2e` has built, with the guide's settings. Returns SAM's output if it fails.
    async fn deploy(&self, environment: &str, parameters: &[String]) -> Result<(), String> {
        let stack = self.stack(environment);
        let mut sam = sam(&["deploy", "--no-confirm-changeset", "--config-env", environment]);
        sam.args(["--stack-name", &stack, "--s3-prefix", &self.archives]);
        if !parameters.is_empty() {
            sam.arg("--parameter-overrides").args(parameters);
        }
        let done = sam.output().await.unwrap();
        let said = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        done.status.success().then_some(()).ok_or(said.concat())
    }

    /// A first deployment with a mistake fails, and nothing of it is there afterwards.
    async fn fails(&self, environment: &str, parameters: &[String]) -> String {
        let said = self.deploy(environment, parameters).await;
        let said = said.err().unwrap_or_else(|| panic!("{environment} was deployed with {parameters:?}"));
        let mut left = self.left().await;
        // A refused change set leaves a stack without resources. The next deployment is a first one, too.
        let empty = format!("stack {}", self.stack(environment));
        if left == [empty] && self.state(environment).await["StackStatus"] == "REVIEW_IN_PROGRESS" {
            left.clear();
        }
        assert_eq!(left, Vec::<String>::new(), "{said}");
        said
    }

    /// What a deployment without changes must not change.
    async fn state(&self, environment: &str) -> Value {
        let stack = json!(["cloudformation", "describe_stacks", {"StackName": self.stack(environment)}]);
        let found = aws(vec![stack]).await[0]["Stacks"][0].take();
        ["StackId", "StackStatus", "CreationTime", "LastUpdatedTime", "Parameters", "Outputs"]
            .map(|field| (field.to_owned(), found[field].clone()))
            .into_iter()
            .collect()
    }

    async fn delete(&self, environment: &str) {
        let stack = self.stack(environment);
        let mut sam = sam(&["delete", "--no-prompts", "--config-env", environment, "--stack-name", &stack]);
        let done = sam.args(["--s3-prefix", &self.archives]).output().await.unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// All there is of the system, one resource in an entry.
    async fn left(&self) -> Vec<String> {
        let done = python("left_overs.py", &[&self.system]).output().await.unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn a_system_is_undone_if_it_fails_deployed_again_unchanged_and_deleted() {
    let target = Target::here();
    let [fails, again, deletion] = [
        target.shows(Check::FailedDeployment),
        target.shows(Check::SecondDeployment),
        target.shows(Check::Deletion),
    ];
    if !again {
        return;
    }
    let life = Life::new();
    // A worker needs its core: CloudFormation finds no export, or, if it looks for them first, no parameters. SAM's table
    // of events breaks the lines.
    let said = life.fails("worker", &life.worker()).await;
    let reason: String = said.split_whitespace().collect();
    let lacking = [format!("tickover-{}-worker-policy", life.system), format!("/tickover/{}/", life.system)];
    assert!(lacking.iter().any(|name| reason.contains(name)), "{said}");
    if fails {
        // The table, which is created last, can't be encrypted: everything else was created before.
        let found = aws(vec![json!(["sts", "get_caller_identity", {}])]).await;
        let region = target.config().await.region().unwrap().to_string();
        let account = found[0]["Account"].as_str().unwrap();
        let key = format!("KmsKeyArn=arn:aws:kms:{region}:{account}:key/{NO_KEY}");
        // Secrets Manager would look for the key as well, and before.
        let core = life.core.iter().filter(|parameter| *parameter != "Callbacks=on");
        life.fails("core", &core.cloned().chain([key]).collect::<Vec<_>>()).await;
        let undone_at = Instant::now();
        until("the names of the queues", NAMES_ARE_FREE_AFTER, async || {
            (undone_at.elapsed() > NAMES_ARE_FREE_AFTER).then_some(())
        })
        .await;
    }
    for (environment, parameters) in [("core", &life.core), ("worker", &life.worker())] {
        life.deploy(environment, parameters).await.unwrap();
    }
    for environment in ["core", "worker"] {
        let before = life.state(environment).await;
        assert!(before["Parameters"].to_string().contains(&life.system), "{before}");
        // The parameters aren't given again.
        life.deploy(environment, &[]).await.unwrap();
        assert_eq!(life.state(environment).await, before);
    }
    if deletion {
        life.delete("worker").await;
        life.delete("core").await;
        assert_eq!(life.left().await, [format!("table {}", life.system)]);
    }
}

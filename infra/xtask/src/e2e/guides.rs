//! The commands of the guides for AWS that an emulator can take: a release, the script without SAM, and the roles of a
//! pipeline. They are run as they are written, with the names that they leave to the reader.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Kind, SYSTEM, Sam, tests};
use crate::build::Architecture;
use crate::cargo::{root, search_path, status, target_dir};
use crate::test::at_emulator;
use crate::{dist, guide, python};

const BUCKET: &str = "releases";
/// The parameters that an emulator needs, of the core and of the worker. Each template is given those that it has.
const PARAMETERS: &str = "TickSource=SchedulerWithoutInput MaxTimerConcurrency=0 MaxConcurrency=0 MaxLowConcurrency=0 \
                          DeletionProtection=false";
/// Which tests the deployed system must pass.
const WORKFLOWS: &str = "workflow::";
const DEPLOYMENT: &str = "infra/DEPLOY.md";
const PRODUCTION: &str = "infra/PRODUCTION.md";
/// Deletes what both ways deploy.
const DELETE: &str = "\
aws cloudformation delete-stack --stack-name tickover-worker-orders
aws cloudformation wait stack-delete-complete --stack-name tickover-worker-orders
aws cloudformation delete-stack --stack-name tickover
aws cloudformation wait stack-delete-complete --stack-name tickover
";

impl Sam {
    /// Makes the roles of a pipeline. Then deploys a system from a release, and another one by the script. Of each, the
    /// workflows run before it is deleted.
    pub(super) fn follow_the_guides_for_aws(&self, endpoint: &str) -> Result<()> {
        let aws = self.with_aws_cli()?;
        aws.roles(endpoint)?;
        let release = dist::of_this_machine()?;
        aws.shell(&format!("aws s3 mb s3://{BUCKET}"), root(), endpoint)?;
        aws.try_out("a release", &of_release()?, &release, endpoint)?;
        let by_script = guide::block(DEPLOYMENT, "deploy-with-cargo-lambda.sh")?;
        let here = Architecture::here().name();
        let by_script = replaced(&by_script, "MY-BUCKET", &format!("{BUCKET} {SYSTEM} {PARAMETERS}"))?;
        let by_script = format!("export ARCHITECTURE={here}\n{by_script}");
        aws.try_out("the script without SAM", &by_script, root(), endpoint)
    }

    /// Deploys the system by these commands, runs its workflows, and deletes it.
    fn try_out(&self, what: &str, commands: &str, folder: &Path, endpoint: &str) -> Result<()> {
        self.shell(commands, folder, endpoint).with_context(|| what.to_owned())?;
        let mut tests = tests(SYSTEM, &self.python, &[WORKFLOWS.to_owned()]);
        let ended = status(at_emulator(&mut tests, endpoint))?;
        ensure!(ended.success(), "{what}: the workflows ended with {ended}");
        self.shell(DELETE, root(), endpoint)?;
        self.nothing_is_left(endpoint, Kind::Ministack)
    }

    /// The same, with the AWS CLI in its `PATH`.
    fn with_aws_cli(&self) -> Result<Self> {
        let requirements = root().join("infra/tools/aws-cli.txt");
        let python = python::install(&target_dir()?.join("aws-cli"), &requirements, "awscli")?;
        let aws = python.parent().context("a program without a folder")?.to_owned();
        let folders = std::env::split_paths(&self.path).chain([aws]);
        let path = search_path(folders)?;
        Ok(Self { python: self.python.clone(), path, folder: self.folder.clone() })
    }

    /// The roles of a pipeline, with the guide's own policies.
    fn roles(&self, endpoint: &str) -> Result<()> {
        let folder = self.folder.join("pipeline");
        fs::create_dir_all(&folder)?;
        for (file, having) in [("deployer.json", "iam:*Role"), ("trust.json", "AssumeRoleWithWebIdentity")] {
            fs::write(folder.join(file), guide::file(PRODUCTION, having)?)?;
        }
        let block = guide::block(PRODUCTION, "create-open-id-connect-provider")?;
        self.shell(&block, &folder, endpoint).context("the roles of a pipeline")
    }
}

/// The guide's commands for a release, in its folder.
fn of_release() -> Result<String> {
    let block = guide::block(DEPLOYMENT, "sha256sum")?;
    let block = replaced(&block, "BUCKET", BUCKET)?;
    let block = replaced(&block, "VERSION", dist::VERSION)?;
    let here = Architecture::here().name();
    replaced(&block.replace("/arm64/", &format!("/{here}/")), "=arm64", &format!("={here} {PARAMETERS}"))
}

/// The text with this part replaced wherever it is.
fn replaced(text: &str, part: &str, by: &str) -> Result<String> {
    ensure!(text.contains(part), "the guide's commands have no `{part}`: {text}");
    Ok(text.replace(part, by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_release_name_this_machines_archives() {
        let commands = of_release().unwrap();
        let here = Architecture::here().name();
        assert!(
            commands.contains(&format!("CodeKey=tickover/{}/{here}/worker.zip", dist::VERSION)),
            "{commands}"
        );
        assert_eq!(commands.matches(PARAMETERS).count(), 2, "{commands}");
        assert!(!commands.contains("BUCKET") && !commands.contains("VERSION"), "{commands}");
    }

    #[test]
    fn there_are_tests_for_what_is_deployed() {
        let folder = root().join("tests/tests/end_to_end");
        let main = fs::read_to_string(folder.join("main.rs")).unwrap();
        let workflows = fs::read_to_string(folder.join("workflow.rs")).unwrap();
        assert!(main.contains(&format!("\nmod {};\n", WORKFLOWS.trim_end_matches(':'))), "{main}");
        assert!(workflows.contains("#[tokio::test]"), "{workflows}");
    }
}

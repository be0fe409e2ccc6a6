//! `cargo xtask lint`: checks the infrastructure's templates and those of a release with cfn-lint, without access to AWS,
//! and the workflows of GitHub Actions with zizmor. What else they must say, `tests/tests/templates` checks.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{root, succeed, target_dir, without_cargos_own, write};
use crate::test::away_from_aws;
use crate::{dist, python};

const TEMPLATES: [&str; 4] =
    ["infra/core.yaml", "infra/worker.yaml", "infra/queue.yaml", "infra/template.yaml"];

/// A warning is an error too.
pub(crate) fn run() -> Result<()> {
    let target = target_dir()?;
    let requirements = root().join("infra/tools/zizmor.txt");
    let zizmor = python::install_program(&target.join("zizmor"), &requirements, "zizmor")?;
    let mut zizmor = Command::new(zizmor);
    // Without questions to GitHub.
    zizmor.args(["--offline", "--quiet", ".github/workflows"]).current_dir(root()).stdin(Stdio::null());
    succeed(&mut zizmor).context("zizmor reported a problem")?;

    let python = python::install(&target.join("sam"), &root().join("infra/tools/sam.txt"), "samcli")?;
    let mut cfn_lint = Command::new(python.with_file_name("cfn-lint"));
    without_cargos_own(&mut cfn_lint).current_dir(root()).stdin(Stdio::null()).args(TEMPLATES);
    for (name, text) in dist::for_lint()? {
        let path = target.join("lint").join(name);
        write(&path, text)?;
        cfn_lint.arg(path);
    }
    succeed(away_from_aws(&mut cfn_lint)).context("cfn-lint reported a problem")
}

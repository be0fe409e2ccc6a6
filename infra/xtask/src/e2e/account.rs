//! `cargo xtask e2e --account`: the acceptance in an AWS account. `--rehearse` does the same in a new emulator, except for
//! what emulators lack.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::bound;
use super::steps::Steps;
use super::{DECIDE_VARIABLE, Sam, at, build_tests, tests};
use crate::build::Architecture;
use crate::cargo::{output, root, without_cargos_own, without_clippy};
use crate::emulator::Emulator;
use crate::{judge, test};

/// After this time everything is stopped and deleted. On AWS a run takes about an hour.
const LIMIT: Duration = Duration::from_hours(3);
/// The account's number, in which tests see that they aren't for an emulator alone.
const ACCOUNT_VARIABLE: &str = "TICKOVER_TEST_ACCOUNT";
/// The core's parameters beside its name, for the tests' own deployments.
const PARAMETERS_VARIABLE: &str = "TICKOVER_TEST_PARAMETERS";
/// A system's name has at most 24 characters, and a test adds `-again`.
const PREFIX_MAX: usize = 18;
/// The default name. A system of this name may be in use.
const IN_USE: &str = "tickover";
/// Each queue beside the worker's, and what it has.
const QUEUES: [(&str, &str); 2] = [("default", "Priorities=off"), ("emails", "Priorities=on")];

/// The emulator's account.
const EMULATORS_ACCOUNT: &str = "000000000000";
const EMULATORS_REGION: &str = "us-east-1";
/// The emulator has no alarms that compare several metrics.
const EMULATORS_QUEUE: &str = "Alarms=none";
/// The emulator fills in no scheduled time, and receives no messages if concurrency is limited.
const EMULATORS_WORKER: &str = "MaxLowConcurrency=0";
const EMULATORS_CORE: &str = "TickSource=SchedulerWithoutInput MaxTimerConcurrency=0 MaxConcurrency=0";

/// Prints the number of the account that the credentials belong to.
const ACCOUNT: &str = r#"
import boto3, sys
try: print(boto3.client("sts").get_caller_identity()["Account"])
except Exception as error: sys.exit(str(error))
"#;

/// Where everything is deployed.
struct Place {
    region: String,
    /// The system's name, with which all names begin.
    system: String,
    sam: Sam,
    architecture: Architecture,
    /// Instead of AWS.
    emulator: Option<Emulator>,
}

/// Does it in the account that the environment's credentials belong to.
pub(super) fn run(
    region: &str,
    prefix: &str,
    confirmed: Option<&str>,
    args: &[String],
) -> Result<ExitStatus> {
    check_region(region)?;
    check_prefix(prefix)?;
    let architecture =
        if Architecture::Arm64.has_standard_library()? { Architecture::Arm64 } else { Architecture::here() };
    let (region, system) = (region.to_owned(), prefix.to_owned());
    Place { region, system, sam: Sam::install()?, architecture, emulator: None }.accept(confirmed, args)
}

/// Does it in a new emulator.
pub(super) fn rehearse(args: &[String]) -> Result<ExitStatus> {
    let sam = Sam::install()?;
    let emulator = Emulator::start_judged("rehearsal")?;
    println!("emulator: {} (log: {})", emulator.endpoint(), emulator.log().display());
    let (region, system) = (EMULATORS_REGION.to_owned(), "rehearsal".to_owned());
    let architecture = Architecture::here();
    let mut place = Place { region, system, sam, architecture, emulator: Some(emulator) };
    let ended = place.accept(Some(EMULATORS_ACCOUNT), args);
    let judged = place.emulator.as_mut().map_or(Ok(()), |emulator| emulator.conclude(false));
    judged.and(ended)
}

fn check_region(region: &str) -> Result<()> {
    let is_region = region.split('-').count() >= 3
        && region
            .chars()
            .all(|letter| letter == '-' || letter.is_ascii_lowercase() || letter.is_ascii_digit());
    ensure!(is_region, "`{region}` is no region, such as eu-central-1");
    Ok(())
}

fn check_prefix(prefix: &str) -> Result<()> {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_name = prefix.starts_with(|letter: char| letter.is_ascii_lowercase())
        && prefix.ends_with(is_letter)
        && prefix.chars().all(|letter| letter == '-' || is_letter(letter))
        && prefix.len() <= PREFIX_MAX;
    ensure!(
        is_name,
        "the prefix `{prefix}` must have at most {PREFIX_MAX} small letters, digits and hyphens, and begin with a letter"
    );
    ensure!(
        prefix != IN_USE,
        "the prefix `{IN_USE}` is the default name of systems that are in use: take another one"
    );
    Ok(())
}

/// There is nothing yet of the names that the clean-up will delete.
fn check_unused(prefix: &str, there: &str) -> Result<()> {
    ensure!(there.is_empty(), "the prefix {prefix} is in use, take another one. There is\n{there}");
    Ok(())
}

/// The account is the one that the user has named.
fn check_confirmed(confirmed: Option<&str>, account: &str) -> Result<()> {
    match confirmed {
        None => bail!("nothing was done. To do it, add `--confirm {account}`"),
        Some(named) => {
            ensure!(named == account, "the credentials are of the account {account}, not of {named}");
        }
    }
    Ok(())
}

/// Whether a worker has this parameter of the core, too.
fn is_of_worker(parameter: &str) -> bool {
    ["Architecture=", "MaxConcurrency="].iter().any(|name| parameter.starts_with(name))
}

impl Place {
    fn accept(&self, confirmed: Option<&str>, args: &[String]) -> Result<ExitStatus> {
        let account = self.account()?;
        let usd = bound::usd(LIMIT)?;
        let Self { region, system, architecture, .. } = self;
        println!(
            "e2e: account {account}, region {region}\n\
             e2e: deploys the systems {system} and {system}-again for {}, each with a core and a worker, and {} queues\n\
             e2e: costs at most {usd:.2} USD: the bill of a month for {} systems with the tests' work, by `tickover cost`\n\
             e2e: deletes all stacks, tables, log groups and archives of these names, after {} hours at the latest",
            architecture.name(),
            QUEUES.len(),
            bound::SYSTEMS,
            LIMIT.as_secs() / 3600,
        );
        let there = self.left_overs()?;
        check_unused(system, &there)?;
        check_confirmed(confirmed, &account)?;
        build_tests()?;
        let steps = Steps::until_stopped(LIMIT)?;
        let ended = self.deploy(&steps).and_then(|()| self.test(&steps, &account, args));
        if let Err(error) = &ended {
            eprintln!("e2e: {error:#}");
        }
        self.clean_up()?;
        ended
    }

    /// The number of the account that the credentials belong to.
    fn account(&self) -> Result<String> {
        let mut python = Command::new(&self.sam.python);
        let account = output(self.at(python.args(["-c", ACCOUNT])));
        let account = account.context("there are no valid AWS credentials")?;
        Ok(account.trim().to_owned())
    }

    /// As the guide says, with other names. Settings differ only where emulators need it.
    fn deploy(&self, steps: &Steps) -> Result<()> {
        let architecture = format!("Architecture={}", self.architecture.name());
        for environment in ["core", "worker"] {
            let build = ["build", "--config-env", environment, "--parameter-overrides", &architecture];
            steps.succeed(&mut self.sam(&build))?;
        }
        let system = format!("System={}", self.system);
        let core = self.core_parameters();
        let core: Vec<&str> = core.split(' ').collect();
        self.deploy_stack(steps, "core", "", &[&[system.as_str()], &core[..]].concat())?;
        let worker = core.into_iter().filter(|parameter| is_of_worker(parameter));
        let worker = worker.chain([system.as_str(), "Priorities=on"]);
        let worker: Vec<&str> = worker.chain(self.emulator.as_ref().map(|_| EMULATORS_WORKER)).collect();
        self.deploy_stack(steps, "worker", "-worker-orders", &worker)?;
        for (queue, priorities) in QUEUES {
            let suffix = format!("-queue-{queue}");
            let named = format!("Queue={queue}");
            let parameters = [system.as_str(), &named, priorities].into_iter();
            let parameters: Vec<&str> =
                parameters.chain(self.emulator.as_ref().map(|_| EMULATORS_QUEUE)).collect();
            self.deploy_stack(steps, "queue", &suffix, &parameters)?;
        }
        Ok(())
    }

    /// The core's parameters beside its name.
    fn core_parameters(&self) -> String {
        let emulators = if self.emulator.is_some() { format!(" {EMULATORS_CORE}") } else { String::new() };
        format!("Architecture={} Callbacks=on{emulators}", self.architecture.name())
    }

    fn deploy_stack(&self, steps: &Steps, template: &str, suffix: &str, parameters: &[&str]) -> Result<()> {
        let stack = format!("{}{suffix}", self.system);
        // A queue has nothing to build, and no settings of its own.
        let settings: &[&str] = match template {
            "queue" => &["--config-env", "core", "--template-file", "queue.yaml"],
            environment => &["--config-env", environment],
        };
        let mut sam = self.sam(&["deploy", "--no-confirm-changeset"]);
        sam.args(settings).args(["--stack-name", &stack, "--s3-prefix", &self.system]);
        steps.succeed(sam.arg("--parameter-overrides").args(parameters))
    }

    fn test(&self, steps: &Steps, account: &str, args: &[String]) -> Result<ExitStatus> {
        let mut tests = tests(&self.system, &self.sam.python, args);
        if self.emulator.is_some() {
            tests.env(DECIDE_VARIABLE, judge::decider()?);
        }
        tests.env(ACCOUNT_VARIABLE, account).env(PARAMETERS_VARIABLE, self.core_parameters());
        steps.status(self.sam.environment(self.at(&mut tests)))
    }

    /// Deletes what was made, and prints what is left. It isn't stopped by signals.
    fn clean_up(&self) -> Result<()> {
        let system = &self.system;
        let mut python = Command::new(&self.sam.python);
        python.arg(root().join("infra/tools/clean_up.py")).arg(system);
        let cleaned = Steps::unstoppable().succeed(self.at(&mut python));
        let again = || format!("the clean-up failed; do it again: infra/tools/clean_up.py {system}");
        let left = self.left_overs().with_context(again)?;
        ensure!(left.is_empty(), "{}\nThis is left:\n{left}", again());
        cleaned.with_context(again)?;
        println!("e2e: nothing is left of {system}");
        Ok(())
    }

    fn left_overs(&self) -> Result<String> {
        let mut python = Command::new(&self.sam.python);
        output(self.at(python.arg(root().join("infra/tools/left_overs.py")).arg(&self.system)))
    }

    fn sam(&self, args: &[&str]) -> Command {
        let mut sam = Command::new(self.sam.python.with_file_name("sam"));
        self.sam.environment(self.at(without_clippy(&mut sam))).current_dir(root().join("infra")).args(args);
        sam
    }

    /// Makes a command use this account, or the emulator, in this region.
    fn at<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        without_cargos_own(command).stdin(Stdio::null()).env("PYTHONDONTWRITEBYTECODE", "1");
        match &self.emulator {
            Some(emulator) => at(command, &emulator.endpoint()),
            None => command.env_remove(test::ENDPOINT),
        };
        command.env("AWS_REGION", &self.region).env("AWS_DEFAULT_REGION", &self.region)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::Cli;

    fn parsed(words: &str) -> Option<super::super::E2eArgs> {
        let words = ["xtask", "e2e"].into_iter().chain(words.split_whitespace());
        match Cli::try_parse_from(words).ok()?.command {
            crate::Command::E2e(args) => Some(args),
            _ => None,
        }
    }

    #[test]
    fn an_account_is_given_by_region_and_prefix_before_the_tests_own_arguments() {
        let args =
            parsed("--account eu-central-1 acceptance --confirm 123456789012 forty --nocapture").unwrap();
        assert_eq!(args.account, ["eu-central-1", "acceptance"]);
        assert_eq!(args.confirm.as_deref(), Some("123456789012"));
        assert_eq!(args.args, ["forty", "--nocapture"]);
        let plain = parsed("forty").unwrap();
        assert_eq!((plain.account.len(), plain.rehearse, plain.args), (0, false, vec!["forty".to_owned()]));
        assert!(parsed("--rehearse").unwrap().rehearse);
        for wrong in
            ["--account eu-central-1", "--confirm 123456789012", "--rehearse --account eu-central-1 a"]
        {
            assert!(parsed(wrong).is_none(), "{wrong}");
        }
        let help = Cli::command().find_subcommand_mut("e2e").unwrap().render_long_help().to_string();
        for said in ["PREFIX-again", "what the run may cost at most", "it deletes their stacks"] {
            assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{help}");
        }
    }

    #[test]
    fn a_prefix_of_which_there_is_something_is_refused() {
        check_unused("acceptance", "").unwrap();
        let refused = check_unused("acceptance", "table acceptance\n").unwrap_err().to_string();
        assert!(refused.contains("in use") && refused.contains("table acceptance"), "{refused}");
    }

    #[test]
    fn only_prefixes_that_fit_all_names_and_no_system_in_use_are_taken() {
        for prefix in ["acceptance", "e2e-2026-11", "a", "abcdefghijklmnopqr"] {
            check_prefix(prefix).unwrap();
        }
        for prefix in ["", "tickover", "Acceptance", "2e2", "-a", "a-", "a_b", "a b", "abcdefghijklmnopqrs"] {
            check_prefix(prefix).unwrap_err();
        }
        for region in ["eu-central-1", "us-gov-west-1"] {
            check_region(region).unwrap();
        }
        for region in ["", "acceptance", "eu-central", "EU-CENTRAL-1", "eu central 1"] {
            check_region(region).unwrap_err();
        }
    }

    #[test]
    fn an_account_is_used_only_if_it_is_the_named_one() {
        check_confirmed(Some("123456789012"), "123456789012").unwrap();
        let other = check_confirmed(Some("123456789012"), "210987654321").unwrap_err();
        assert_eq!(other.to_string(), "the credentials are of the account 210987654321, not of 123456789012");
        let plan = check_confirmed(None, "123456789012").unwrap_err();
        assert!(plan.to_string().contains("--confirm 123456789012"), "{plan}");
    }
}

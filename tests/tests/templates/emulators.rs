//! Checks that the emulators' files agree: `localstack/compose.yaml` and `localstack.env` with each other and with the
//! templates, and the environments of `infra/samconfig.toml`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};

use crate::template;

const COMPOSE: &str = "localstack/compose.yaml";
const VARIABLES: &str = "localstack/localstack.env";
const SAM: &str = "infra/samconfig.toml";
/// The services that `sam deploy` itself uses, for any template.
const FOR_SAM: [&str; 3] = ["cloudformation", "s3", "sts"];
/// The environments for emulators, and a line that each of them has.
const LOCAL: [&str; 3] = ["local", "core-local", "worker-local"];
const X86: &str = "\"Architecture=x86_64\",";
/// The account id in emulators.
const ACCOUNT: &str = "000000000000";

/// `SERVICES` contains exactly the services that the templates need.
fn check_services(templates: &[(&str, String)], compose: &str) -> Result<()> {
    let mut needed: BTreeSet<String> = FOR_SAM.into_iter().map(str::to_owned).collect();
    for service in templates.iter().flat_map(|(_, template)| template::services(template)) {
        needed.insert(if service == "apigatewayv2" { "apigateway".to_owned() } else { service });
    }
    if templates.iter().any(|(_, template)| template.contains("SSESpecification")) {
        needed.insert("kms".to_owned());
    }
    let services = setting(compose, "SERVICES: ").context("compose.yaml sets no SERVICES")?;
    let listed: BTreeSet<String> = services.split(',').map(|name| name.trim().to_owned()).collect();
    ensure!(listed == needed, "{COMPOSE}: SERVICES is {listed:?}, the templates need {needed:?}");
    Ok(())
}

/// Each queue's path in the variables is the path that `LocalStack` uses.
fn check_queues(compose: &str, variables: &str) -> Result<()> {
    let strategy = setting(compose, "SQS_ENDPOINT_STRATEGY: ").unwrap_or("standard");
    let begins = match strategy {
        "off" | "standard" | "domain" => format!("/{ACCOUNT}/"),
        "path" | "dynamic" => format!("/queue/us-east-1/{ACCOUNT}/"),
        other => bail!("{COMPOSE}: SQS_ENDPOINT_STRATEGY is {other}"),
    };
    // With these strategies the host's name contains the region, which localstack.env leaves out.
    ensure!(!matches!(strategy, "standard" | "domain"), "{COMPOSE}: {strategy} needs names in DNS");
    let endpoint = setting(variables, "AWS_ENDPOINT_URL=").context("no AWS_ENDPOINT_URL")?;
    for name in ["TICKOVER_QUEUE_URLS", "TICKOVER_TIMERS", "TICKOVER_EVENTS"] {
        let url = setting(variables, &format!("{name}=")).with_context(|| format!("no {name}"))?;
        let path = url.strip_prefix(endpoint).with_context(|| format!("{name} isn't at {endpoint}"))?;
        let is_like_it = path.strip_prefix(&begins).is_some_and(|name| !name.contains('/'));
        ensure!(is_like_it, "{VARIABLES}: {name} is {url}, with {strategy} it would be {endpoint}{begins}…");
    }
    Ok(())
}

/// No command of an environment has its own parameters, and those for emulators are for this architecture.
fn check_environments(config: &str) -> Result<()> {
    let sections = config.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(".parameters]"));
    for section in sections.filter(|section| !section.ends_with(".global")) {
        // Only where the template is: SAM builds one file and deploys another.
        let (name, command) = section.rsplit_once('.').unwrap_or_default();
        let settings = settings(config, name, command);
        let is_a_path =
            |line: &&str| line.starts_with("template_file = ") || line.starts_with("build_dir = ");
        ensure!(
            settings.iter().all(is_a_path),
            "{SAM}: a build and its deployment may have other parameters: {section}"
        );
    }
    let commands = config.lines().filter(|line| line.starts_with('['));
    ensure!(
        commands.clone().all(|section| section.ends_with(".parameters]")),
        "{SAM}: not a section of parameters: {:?}",
        commands.collect::<Vec<_>>()
    );
    for name in LOCAL {
        let given = settings(config, name, "global");
        ensure!(given.contains(&X86), "{SAM}: {name} isn't for x86_64, which `cargo xtask e2e` replaces");
    }
    Ok(())
}

/// The settings of one command in an environment, as lines.
fn settings<'a>(config: &'a str, name: &str, command: &str) -> Vec<&'a str> {
    let begin = format!("[{name}.{command}.parameters]");
    let lines = config.lines().skip_while(|line| *line != begin).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

fn setting<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix(name))
        .map(|value| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parts, read};

    #[test]
    fn localstack_is_given_each_service_of_the_template_and_of_its_encryption() {
        let (templates, compose) = (parts::all().unwrap(), read(COMPOSE).unwrap());
        check_services(&templates, &compose).unwrap();
        for service in ["kms,", "scheduler,", "ssm,", ",sts"] {
            check_services(&templates, &compose.replacen(service, "", 1)).unwrap_err();
        }
        check_services(&templates, &compose.replace("kms,", "kms,glue,")).unwrap_err();
    }

    #[test]
    fn queues_are_where_localstack_and_the_variables_both_say() {
        let [compose, variables] = [COMPOSE, VARIABLES].map(|path| read(path).unwrap());
        check_queues(&compose, &variables).unwrap();
        for strategy in ["path", "standard", "domain", "dynamic"] {
            let compose = compose.replace("\"off\"", strategy);
            check_queues(&compose, &variables).unwrap_err();
        }
        check_queues(&compose, &variables.replace("4566/000000000000/", "4566/")).unwrap_err();
    }

    #[test]
    fn what_is_built_for_an_emulator_is_what_is_deployed_there() {
        let sam = read(SAM).unwrap();
        check_environments(&sam).unwrap();
        check_environments(&sam.replace("x86_64", "arm64")).unwrap_err();
        check_environments(&format!(
            "{sam}\n[local.deploy.parameters]\nparameter_overrides = [\"Xray=true\"]\n"
        ))
        .unwrap_err();
    }
}

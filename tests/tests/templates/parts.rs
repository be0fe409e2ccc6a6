//! Checks of the templates in `infra`: what they may not contain, and what the core must make for the others.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use crate::{read, template};

pub(crate) const CORE: &str = "infra/core.yaml";
pub(crate) const WORKER: &str = "infra/worker.yaml";
pub(crate) const QUEUE: &str = "infra/queue.yaml";
/// The example that nests a core and a worker.
pub(crate) const NESTED: &str = "infra/template.yaml";
pub(crate) const FILES: [&str; 4] = [CORE, WORKER, QUEUE, NESTED];
/// What emulators get wrong. Without parameters that are lists, no list is joined either. `Fn::Contains` is documented
/// without a short form.
const FORBIDDEN: [&str; 8] =
    ["Transform:", "Fn::ForEach", "&{", "Fn::Join", "!Join", "CommaDelimitedList", "List<", "!Contains"];
/// Resources that may be absent, with attributes that only they know. Every other address is made of names: `LocalStack`
/// refuses to add a resource to a stack if another one asks for its attribute.
const ASKED: [&str; 5] = ["Api", "ApiLogs", "GatewayUrl", "TickScheduleRole", "WorkerVersion"];
const PARAMETER: &str = "/tickover/${System}/";

/// The templates with resources of their own: each one's path from the root, and its text.
pub(crate) fn all() -> Result<[(&'static str, String); 3]> {
    Ok([(CORE, read(CORE)?), (WORKER, read(WORKER)?), (QUEUE, read(QUEUE)?)])
}

fn check() -> Result<()> {
    for file in FILES {
        is_plain(&read(file)?).context(file)?;
    }
    let mut asked = BTreeSet::new();
    for (file, text) in all()? {
        asked.extend(template::asked_though_optional(&text).into_iter().map(|name| (name, file)));
    }
    let unknown: Vec<_> = asked.iter().filter(|(name, _)| !ASKED.contains(&name.as_str())).collect();
    ensure!(unknown.is_empty(), "use the resource's name in place of its attribute: {unknown:?}");
    let gone = ASKED.iter().find(|known| !asked.iter().any(|(name, _)| name == *known));
    ensure!(gone.is_none(), "nothing asks for an attribute of {gone:?}");
    let [(_, core), (_, worker), (_, queue)] = all()?;
    template::loops(CORE, &core)?;
    template::loops(WORKER, &worker)?;
    is_made(&core, WORKER, &worker)?;
    is_made(&core, QUEUE, &queue)?;
    is_imported(&core, &worker)
}

fn is_plain(text: &str) -> Result<()> {
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let found = FORBIDDEN.iter().find(|construct| line.contains(**construct));
        ensure!(found.is_none(), "not every emulator can read this: {}", line.trim());
    }
    Ok(())
}

/// The core makes each parameter that another template reads.
fn is_made(core: &str, file: &str, reader: &str) -> Result<()> {
    let made = |line: &&str| line.trim_start().starts_with("Name: ");
    let made: BTreeSet<&str> = core
        .lines()
        .filter(made)
        .filter_map(|line| line.split_once(PARAMETER))
        .map(|(_, name)| name.trim_end_matches('"'))
        .collect();
    let reference = format!("resolve:ssm:{PARAMETER}");
    let read = reader.split(&reference).skip(1);
    let read: BTreeSet<&str> = read.filter_map(|rest| rest.split('}').next()).collect();
    ensure!(!read.is_empty(), "{file} reads no parameter of the core");
    let missing: Vec<_> = read.difference(&made).collect();
    ensure!(missing.is_empty(), "{file} reads what {CORE} doesn't make: {missing:?}");
    Ok(())
}

/// The core exports what a worker imports.
fn is_imported(core: &str, worker: &str) -> Result<()> {
    let imported = worker.split("Fn::ImportValue: !Sub \"").skip(1);
    let imports: Vec<&str> = imported.filter_map(|rest| rest.split('"').next()).collect();
    ensure!(
        !imports.is_empty(),
        "{WORKER} imports nothing: without a core it would be deployed nevertheless"
    );
    for import in imports {
        let export = format!("Export: {{ Name: !Sub \"{import}\" }}");
        ensure!(core.contains(&export), "{WORKER} imports {import}, and {CORE} doesn't export it");
    }
    Ok(())
}

/// The version that a deployment says of itself, which the tool compares with its own, is this one.
fn has_version(core: &str, version: &str) -> Result<()> {
    let value = format!("Value: \"{version}\"");
    let parameter = core.split_once("  VersionParameter:\n").map_or("", |(_, rest)| rest);
    let parameter = parameter.split_once("\n\n").map_or(parameter, |(first, _)| first);
    ensure!(parameter.contains(&value), "VersionParameter doesn't have the workspace's version");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_says_the_version_of_the_workspace() {
        let core = read(CORE).unwrap();
        has_version(&core, env!("CARGO_PKG_VERSION")).unwrap();
        has_version(&core, "0.0.0").unwrap_err();
    }

    #[test]
    fn a_worker_reads_only_what_the_core_makes() {
        check().unwrap();
        let [core, worker] = [CORE, WORKER].map(|file| read(file).unwrap());
        is_made(&core.replace("/due-shards\"", "/shards\""), WORKER, &worker).unwrap_err();
        is_made(&core.replace("/key\"", "/lock\""), QUEUE, &read(QUEUE).unwrap()).unwrap_err();
        is_imported(&core.replace("-worker-policy\"", "-policy\""), &worker).unwrap_err();
    }

    #[test]
    fn what_emulators_cannot_read_is_found() {
        let core = read(CORE).unwrap();
        for construct in FORBIDDEN {
            is_plain(&format!("{core}\n  X: {construct}\n")).unwrap_err();
            is_plain(&format!("{core}\n  # {construct}\n")).unwrap();
        }
    }
}

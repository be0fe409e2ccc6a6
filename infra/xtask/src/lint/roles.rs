//! Checks that the roles in the templates allow what the store's code does with the table.
//!
//! Both sides are read as text: each line of the store that makes a key, and the statements of the policies. The store's
//! code names no kind of record, so [`RECORDS`] says what is done with which. Which of them a function works on, [`NEVER`]
//! says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::{parts, template};
use crate::cargo::root;

const STORE: &str = "shared/dynamodb/src";
/// The file with the keys, from [`STORE`].
const KEYS: &str = "key.rs";
/// The policies of the core that the roles of functions, and of workers, have.
const ROLES: [(&str, &[&str]); 6] = [
    ("schedule", &["RecordsPolicy", "ScheduleRole"]),
    ("claim", &["RecordsPolicy", "ClaimRole"]),
    ("complete", &["RecordsPolicy", "CompleteRole"]),
    ("tick", &["RecordsPolicy", "TickRole"]),
    ("gateway", &["RecordsPolicy", "GatewayRole"]),
    ("worker", &["WorkerPolicy"]),
];
const ALL: &[Action] =
    &[Action::Get, Action::BatchGet, Action::Query, Action::Put, Action::Update, Action::Delete];
/// The function that makes the key of a record of any kind.
const OF_RECORD: &str = "of";
/// What is done with which kinds of records.
const RECORDS: [(Action, &[&str]); 4] = [
    (Action::Get, &["task", "exec", "cron", "queue", "op", "gate", "tick", "key"]),
    (Action::BatchGet, &["task", "exec", "cron", "queue", "op"]),
    (Action::Put, &["task", "exec", "cron", "queue", "op", "gate", "tick", "key"]),
    (Action::Update, &["task", "exec", "key"]),
];
/// What functions never do, though the store can: the function, the kinds of records, the actions.
const NEVER: [(&str, &[&str], &[Action]); 15] = [
    // Only the tick keeps the idempotency key of a task that waits for months.
    ("schedule", &["key"], &[Action::Update]),
    ("claim", &["key"], &[Action::Update]),
    ("complete", &["key"], &[Action::Update]),
    ("gateway", &["key"], &[Action::Update]),
    ("worker", &["key"], &[Action::Update]),
    // It starts work. Crons, operations on many and ticks are the tick's and the gateway's.
    ("schedule", &["cron", "op", "tick"], ALL),
    // It creates nothing, stores no payload, and reads no journal.
    ("claim", &["cron", "op", "tick"], ALL),
    ("claim", &["task", "exec", "key", "blob"], &[Action::Put]),
    ("claim", &["exec"], &[Action::Query]),
    // It stores results, and reads no payload and no journal.
    ("complete", &["cron", "op", "tick"], ALL),
    ("complete", &["task", "exec", "key", "queue"], &[Action::Put]),
    ("complete", &["exec"], &[Action::Query]),
    ("complete", &["blob"], &[Action::Get]),
    // It reads crons and operations one at a time. Only the gateway lists them.
    ("tick", &["cron", "op"], &[Action::BatchGet]),
    ("worker", &["cron", "op", "tick"], ALL),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Get,
    BatchGet,
    Query,
    Put,
    Update,
    Delete,
}

/// An action with the items of one kind, by the beginning of their keys.
type Use = (Action, String);

impl Action {
    const fn name(self) -> &'static str {
        match self {
            Self::Get => "dynamodb:GetItem",
            Self::BatchGet => "dynamodb:BatchGetItem",
            Self::Query => "dynamodb:Query",
            Self::Put => "dynamodb:PutItem",
            Self::Update => "dynamodb:UpdateItem",
            Self::Delete => "dynamodb:DeleteItem",
        }
    }

    /// What a line of the store does with the key that it makes.
    fn of_line(line: &str) -> Option<Self> {
        let marks = [
            ("read(Key::", Self::Get),
            (".map(Key::", Self::BatchGet),
            ("Statement::delete(Key::", Self::Delete),
            ("Statement::update(Key::", Self::Update),
            ("extend(Key::", Self::Update),
            (".set_key(Some(Key::", Self::Update),
            ("item.extend(Key::", Self::Put),
            ("let mut item = Key::", Self::Put),
            ("let Key { pk, sk } = Key::", Self::Put),
            ("let pk = Key::", Self::Query),
            ("\":pk\", AttributeValue::S(Key::", Self::Query),
        ];
        // Of two that match, the longer one says more: an item is `item.extend(Key::…)`.
        let found = marks.iter().filter(|(mark, _)| line.contains(mark));
        found.max_by_key(|(mark, _)| mark.len()).map(|(_, action)| *action)
    }
}

pub(super) fn check(core: &str) -> Result<()> {
    compare(&uses(&sources()?)?, core)
}

/// Each role allows exactly what its function does, of all that the store can do.
fn compare(uses: &BTreeSet<Use>, core: &str) -> Result<()> {
    let mut wrong = vec![];
    for (function, policies) in ROLES {
        let allowed = allowed(core, policies)?;
        for (action, kind) in uses {
            let is_never = NEVER.iter().any(|(of, kinds, actions)| {
                *of == function && kinds.contains(&kind.as_str()) && actions.contains(action)
            });
            let is_allowed = allowed
                .iter()
                .any(|(one, kinds)| one == action && kinds.as_ref().is_none_or(|kinds| kinds.contains(kind)));
            if is_allowed == is_never {
                let said = if is_allowed { "may, and never does," } else { "may not" };
                wrong.push(format!("{function} {said} {} {kind}#", action.name()));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}: {}", parts::CORE, wrong.join("; "));
    Ok(())
}

/// The actions on the table itself that these policies allow, each with the kinds of items; `None` are all kinds.
fn allowed(core: &str, policies: &[&str]) -> Result<Vec<(Action, Option<BTreeSet<String>>)>> {
    let blocks = template::blocks(core, "Resources");
    let mut allowed = vec![];
    for name in policies {
        let policy = blocks.iter().find(|block| template::title(block) == *name);
        let policy = policy.with_context(|| format!("{} has no {name}", parts::CORE))?;
        for statement in policy.split("- Effect: Allow").skip(1) {
            if !statement.contains(":table/${System}\"") {
                continue;
            }
            let actions = statement.lines().find(|line| line.trim().starts_with("Action: "));
            let actions = actions.context("a statement without an action")?;
            let kinds = statement.split_once("\"dynamodb:LeadingKeys\": [").map(|(_, rest)| {
                let list = rest.split(']').next().unwrap_or_default();
                list.split(", ").map(|key| key.trim_matches('"').trim_end_matches("#*").to_owned()).collect()
            });
            let named =
                |action: &&Action| actions.split([' ', ',', '[', ']']).any(|word| word == action.name());
            allowed.extend(ALL.iter().filter(named).map(|action| (*action, kinds.clone())));
        }
    }
    Ok(allowed)
}

/// What the store does with which kinds of items.
fn uses(sources: &BTreeMap<String, String>) -> Result<BTreeSet<Use>> {
    let keys = kinds(sources.get(KEYS).context("the store has no file of keys")?)?;
    let mut uses = BTreeSet::new();
    for (file, text) in sources.iter().filter(|(file, _)| *file != KEYS) {
        for line in text.lines() {
            for part in line.split(" Key::").flat_map(|part| part.split("(Key::")).skip(1) {
                let name = part.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).next();
                let kind = name.and_then(|name| keys.get(name));
                // `Key::attributes` makes no key.
                if kind.is_none() && name != Some(OF_RECORD) {
                    continue;
                }
                let Some(action) = Action::of_line(line) else {
                    bail!("{STORE}/{file}: the check of roles can't see what this does: {}", line.trim());
                };
                let records = RECORDS.iter().filter(|(done, _)| kind.is_none() && *done == action);
                let records = records.flat_map(|(_, kinds)| *kinds).map(|kind| (*kind).to_owned());
                uses.extend(kind.cloned().into_iter().chain(records).map(|kind| (action, kind)));
            }
        }
    }
    let kinds: BTreeSet<&String> = uses.iter().map(|(_, kind)| kind).collect();
    let unused = keys.values().find(|kind| !kinds.contains(kind));
    ensure!(unused.is_none(), "{STORE}: nothing uses the keys of {unused:?}");
    Ok(uses)
}

/// The functions that make keys, each with the beginning of its keys.
fn kinds(keys: &str) -> Result<BTreeMap<String, String>> {
    let constants: BTreeMap<&str, &str> = keys
        .lines()
        .filter_map(|line| line.strip_prefix("const ")?.split_once(": &str = \""))
        .map(|(name, value)| (name, value.trim_end_matches("\";")))
        .collect();
    let body = keys.split_once("impl Key {").and_then(|(_, rest)| rest.split_once("\n}\n"));
    let (body, _) = body.context("key.rs has no `impl Key`")?;
    let mut kinds = BTreeMap::new();
    for function in body.split("pub(crate) fn ").skip(1) {
        let name = function.split('(').next().unwrap_or_default();
        // A segment has its execution's partition key, and one that waits its gate's.
        let other = kinds.iter().find(|(other, _)| function.contains(&format!("..Self::{other}(")));
        let own = constants.iter().find(|(constant, _)| {
            function.contains(&format!("Self::named({constant},"))
                || function.contains(&format!("{{{constant}}}#"))
        });
        let kind = other.map(|(_, kind): (&String, &String)| kind.clone());
        let kind = kind.or_else(|| own.map(|(_, value)| (*value).to_owned()));
        if let Some(kind) = kind.filter(|_| name != OF_RECORD) {
            kinds.insert(name.to_owned(), kind);
        }
    }
    ensure!(!kinds.is_empty(), "key.rs makes no keys");
    Ok(kinds)
}

/// The store's code by its paths from [`STORE`], without tests.
fn sources() -> Result<BTreeMap<String, String>> {
    let mut sources = BTreeMap::new();
    read(&root().join(STORE), "", &mut sources)?;
    Ok(sources)
}

fn read(folder: &Path, prefix: &str, sources: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            read(&path, &format!("{name}/"), sources)?;
        } else if !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path)?;
            let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            sources.insert(name, text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint;

    fn core() -> String {
        lint::read(parts::CORE).unwrap()
    }

    #[test]
    fn each_role_allows_what_its_function_does_with_the_table() {
        check(&core()).unwrap();
        let uses = uses(&sources().unwrap()).unwrap();
        for (action, kind) in [
            (Action::Get, "gate"),
            (Action::Query, "gate"),
            (Action::Delete, "gate"),
            (Action::Put, "gate"),
            (Action::Put, "exec"),
            (Action::Update, "join"),
            (Action::BatchGet, "task"),
        ] {
            assert!(uses.contains(&(action, kind.to_owned())), "{action:?} {kind}: {uses:?}");
        }
        assert!(!uses.contains(&(Action::Delete, "task".to_owned())));
    }

    #[test]
    fn a_permission_that_is_missing_is_found() {
        let uses = uses(&sources().unwrap()).unwrap();
        let core = core();
        let error = |text: &str| format!("{:#}", compare(&uses, text).unwrap_err());
        for (from, to, said) in [
            (
                "dynamodb:PutItem, dynamodb:DeleteItem",
                "dynamodb:PutItem",
                "may not dynamodb:DeleteItem gate#",
            ),
            ("[\"gate#*\"]", "[\"join#*\"]", "may not dynamodb:GetItem gate#"),
            ("[\"cron#*\", \"tick#*\"", "[\"tick#*\"", "tick may not dynamodb:GetItem cron#"),
            ("\"join#*\", ", "", "may not dynamodb:UpdateItem join#"),
        ] {
            assert!(core.contains(from), "{from}");
            let found = error(&core.replace(from, to));
            assert!(found.contains(said), "{found}");
        }
        // Each of the two shared policies is read by itself.
        let (before, worker) = core.split_once("\n  WorkerPolicy:").unwrap();
        let found = error(&format!("{before}\n  WorkerPolicy:{}", worker.replacen("gate#*", "task#*", 1)));
        assert!(found.contains("worker may not dynamodb:Query gate#") && !found.contains("claim"), "{found}");
    }

    #[test]
    fn a_permission_that_a_function_never_needs_is_found() {
        let uses = uses(&sources().unwrap()).unwrap();
        let core = core();
        let (before, claim) = core.split_once("\n  ClaimRole:").unwrap();
        let claim = claim.replacen("[\"queue#*\"]", "[\"queue#*\", \"task#*\"]", 1);
        let found = format!("{:#}", compare(&uses, &format!("{before}\n  ClaimRole:{claim}")).unwrap_err());
        assert!(found.ends_with("claim may, and never does, dynamodb:PutItem task#"), "{found}");
    }

    #[test]
    fn a_use_of_a_key_that_cannot_be_read_is_refused() {
        let mut sources = sources().unwrap();
        sources.insert("more.rs".to_owned(), "    let it = other(Key::join(id));\n".to_owned());
        let error = format!("{:#}", uses(&sources).unwrap_err());
        assert!(error.ends_with("can't see what this does: let it = other(Key::join(id));"), "{error}");
    }
}

//! Checks that what an account may ask of all its resources can be asked of each of ours, and that no name of one system is
//! that of another.

use anyhow::{Result, ensure};

use crate::template::{blocks, title};

/// Types of resources, each with the setting that all of them have.
const SETTINGS: [(&str, &str); 4] = [
    ("AWS::IAM::Role", "PermissionsBoundary: !If [HasBoundary, "),
    ("AWS::Logs::LogGroup", "KmsKeyId: !If [HasLogKey, "),
    ("AWS::Lambda::Function", "VpcConfig: !If [HasVpc, "),
    ("AWS::Lambda::Function", "TracingConfig: "),
];
/// How a name goes on after the system's, if more follows that a user chooses: no system's own name may go on so.
const PARTS: [&str; 3] = ["dead", "work", "worker"];
const PATTERN: &str = "(?!.*-(dead|work|worker)(-|$))[a-zA-Z][a-zA-Z0-9-]{0,23}";

/// Checks a template with resources of its own.
fn check(file: &str, text: &str) -> Result<()> {
    for block in blocks(text, "Resources") {
        for (kind, setting) in SETTINGS {
            let is_one = block.contains(&format!("\n    Type: {kind}\n"));
            ensure!(!is_one || block.contains(setting), "{file}: {} has no `{setting}`", title(block));
        }
    }
    ensure!(text.contains(&format!("AllowedPattern: \"{PATTERN}\"")), "{file}: System has another pattern");
    let names = text.lines().filter_map(|line| line.trim().split_once("Name: !Sub \"${System}-"));
    for (_, rest) in names {
        // What follows the next hyphen would be a part of another system's name.
        let Some((part, _)) = rest.split_once('-') else { continue };
        ensure!(
            PARTS.contains(&part) || part.contains("${"),
            "{file}: a system may have the name ${{System}}-{part}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts;

    #[test]
    fn every_role_log_and_function_takes_the_accounts_own_settings() {
        for (file, text) in parts::all().unwrap() {
            check(file, &text).unwrap();
            for (kind, setting) in SETTINGS {
                if text.contains(&format!("    Type: {kind}\n")) {
                    check(file, &text.replacen(setting, "Other: ", 1)).unwrap_err();
                }
            }
        }
    }

    #[test]
    fn no_system_has_a_name_with_which_those_of_another_one_go_on() {
        for (file, text) in parts::all().unwrap() {
            check(file, &text.replace("dead|work|worker", "work")).unwrap_err();
            check(file, &text.replace("${System}-dead-", "${System}-lost-")).unwrap_err();
        }
    }
}

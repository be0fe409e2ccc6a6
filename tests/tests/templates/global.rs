//! Checks that a second region can have what one region has: a name that counts for the whole account, or for all of AWS,
//! has the region in it. Otherwise the second deployment of the same system is rolled back.

use anyhow::{Result, ensure};

use crate::template::{blocks, title};

/// The properties with such names, each with its type of resource. A type that isn't here has names for each region, or none
/// that a template sets.
const NAMES: [(&str, &str); 9] = [
    ("AWS::CloudFront::CachePolicy", "Name"),
    ("AWS::CloudFront::Function", "Name"),
    ("AWS::CloudWatch::Dashboard", "DashboardName"),
    ("AWS::IAM::Group", "GroupName"),
    ("AWS::IAM::InstanceProfile", "InstanceProfileName"),
    ("AWS::IAM::ManagedPolicy", "ManagedPolicyName"),
    ("AWS::IAM::Role", "RoleName"),
    ("AWS::IAM::User", "UserName"),
    ("AWS::S3::Bucket", "BucketName"),
];
const REGION: &str = "${AWS::Region}";

/// Checks all resources of a template.
fn check(file: &str, text: &str) -> Result<()> {
    for block in blocks(text, "Resources") {
        for (kind, property) in NAMES {
            if !block.contains(&format!("\n    Type: {kind}\n")) {
                continue;
            }
            let property = format!("      {property}: ");
            let name = block.lines().find_map(|line| line.strip_prefix(&property));
            let differs = name.is_none_or(|name| name.starts_with("!Sub ") && name.contains(REGION));
            ensure!(differs, "{file}: {}: the account has this name in all regions: {name:?}", title(block));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parts, read};

    #[test]
    fn a_name_of_the_whole_account_has_the_region_in_it() {
        for file in parts::FILES {
            check(file, &read(file).unwrap()).unwrap();
        }
        let core = read(parts::CORE).unwrap();
        for name in ["!Ref System", "!Sub \"${System}-dashboard\"", "tickover"] {
            let text = core.replace("!Sub \"${System}-${AWS::Region}\"", name);
            assert_ne!(text, core);
            check(parts::CORE, &text).unwrap_err();
        }
        for (kind, property) in NAMES {
            let with = |name: &str| {
                format!(
                    "\nResources:\n  It:\n    Type: {kind}\n    Properties:\n      {property}: {name}\n\nOutputs:\n"
                )
            };
            check("it", &with("!Sub \"${System}-worker\"")).unwrap_err();
            check("it", &with("!Sub \"${AWS::Region}-${System}-worker\"")).unwrap();
        }
    }
}

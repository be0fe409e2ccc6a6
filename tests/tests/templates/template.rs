//! Reads the templates, and checks in them what cfn-lint doesn't.
//!
//! They are read as text, line by line: the indentation shows which lines belong together.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

const FUNCTION: &str = "Type: AWS::Lambda::Function";
const ALLOWED: &str = "RecursiveLoop: Allow";
const DROPPED: &str = "MetricName: RecursiveInvocationsDropped";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) default: String,
    /// The allowed values; empty if any value is allowed.
    pub(crate) allowed: Vec<String>,
}

/// Each of our functions sends messages that lead back to it through other functions, so each must say that this is
/// intended.
pub(crate) fn loops(file: &str, template: &str) -> Result<()> {
    let functions: Vec<&str> =
        blocks(template, "Resources").into_iter().filter(|block| block.contains(FUNCTION)).collect();
    ensure!(!functions.is_empty(), "{file} has no function");
    for function in functions {
        let name = title(function);
        ensure!(function.contains(ALLOWED), "{file}: {name} doesn't say `{ALLOWED}`");
        let reason = function.lines().take_while(|line| !line.contains(ALLOWED)).last().unwrap_or_default();
        ensure!(reason.trim().starts_with('#'), "{file}: {name} doesn't say why `{ALLOWED}`");
    }
    ensure!(template.contains(DROPPED), "{file} has no alarm on `{DROPPED}`");
    Ok(())
}

/// The AWS services of the template's resource types, such as `AWS::SQS::Queue`, in lower case.
pub(crate) fn services(template: &str) -> BTreeSet<String> {
    let types = blocks(template, "Resources").into_iter().flat_map(str::lines).filter_map(|line| {
        let (_, rest) = line.split_once("Type: AWS::")?;
        rest.split_once("::")
    });
    types.map(|(service, _)| service.to_ascii_lowercase()).collect()
}

/// The resources with a condition of which an attribute is used.
pub(crate) fn asked_though_optional(template: &str) -> BTreeSet<String> {
    let resources = blocks(template, "Resources");
    let optional =
        resources.iter().filter(|block| block.contains("\n    Condition: ")).map(|block| title(block));
    let is_asked = |name: &&str| template.contains(&format!("!GetAtt {name}."));
    optional.filter(is_asked).map(str::to_owned).collect()
}

/// The parameters, in the template's order.
pub(crate) fn parameters(template: &str) -> Vec<Parameter> {
    let value = |block: &str, name: &str| {
        let prefix = format!("    {name}: ");
        let found = block.lines().find_map(|line| line.strip_prefix(&prefix).map(str::to_owned));
        found.unwrap_or_default()
    };
    let word = |text: &str| text.trim().trim_matches('"').to_owned();
    let blocks = blocks(template, "Parameters").into_iter();
    blocks
        .map(|block| Parameter {
            name: title(block).to_owned(),
            default: word(&value(block, "Default")),
            allowed: value(block, "AllowedValues")
                .trim_matches(['[', ']'])
                .split(',')
                .map(word)
                .filter(|word| !word.is_empty())
                .collect(),
        })
        .collect()
}

/// The blocks of one section. Each starts with its name.
pub(crate) fn blocks<'a>(template: &'a str, section: &str) -> Vec<&'a str> {
    let begin = format!("\n{section}:\n");
    let Some((_, rest)) = template.split_once(&begin) else { return vec![] };
    let mut starts = vec![];
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if !line.starts_with([' ', '\n', '#']) {
            break;
        }
        let is_name = line.strip_prefix("  ").is_some_and(|line| !line.starts_with([' ', '#']));
        if is_name {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([at]);
    starts.iter().zip(ends).map(|(start, end)| &rest[*start..end]).collect()
}

pub(crate) fn title(block: &str) -> &str {
    block.lines().next().unwrap_or_default().trim().trim_end_matches(':').trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "Description: x\n\nParameters:\n  Kind:\n    Type: String\n    Default: \"off\"\n    \
        AllowedValues: [\"off\", carry]\n  Size:\n    Default: 3\n\nResources:\n  # Of queues.\n  Queue:\n    \
        Type: AWS::SQS::Queue\n  Work:\n    Type: AWS::Lambda::Function\n    Properties:\n      # Why.\n      \
        RecursiveLoop: Allow\n  Alarm:\n    Type: AWS::CloudWatch::Alarm\n    Properties:\n      \
        MetricName: RecursiveInvocationsDropped\n\nOutputs:\n  Name:\n    Value: AWS::S3::Bucket\n";

    #[test]
    fn every_function_allows_its_loops_with_a_reason() {
        let loops = |text: &str| loops("it", text);
        loops(TEMPLATE).unwrap();
        for (from, to) in [
            ("      RecursiveLoop: Allow\n", ""),
            ("RecursiveLoop: Allow", "RecursiveLoop: Terminate"),
            ("      # Why.\n", ""),
            ("RecursiveInvocationsDropped", "Errors"),
        ] {
            loops(&TEMPLATE.replace(from, to)).unwrap_err();
        }
    }

    #[test]
    fn an_attribute_of_a_resource_that_may_be_absent_is_found() {
        let asked = |more: &str| {
            let optional = "  Queue:\n    Condition: HasIt\n    Type: AWS::SQS::Queue\n";
            let text =
                TEMPLATE.replace("  Queue:\n    Type: AWS::SQS::Queue\n", &format!("{optional}{more}"));
            asked_though_optional(&text).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(asked("  Source:\n    Arn: !GetAtt Queue.Arn\n"), ["Queue"]);
        assert!(asked("  Source:\n    Name: !Ref Queue\n    Arn: !GetAtt Work.Arn\n").is_empty());
    }

    #[test]
    fn a_template_is_read_by_its_indentation() {
        assert_eq!(services(TEMPLATE).into_iter().collect::<Vec<_>>(), ["cloudwatch", "lambda", "sqs"]);
        let parameter = |name: &str, default: &str, allowed: &[&str]| Parameter {
            name: name.to_owned(),
            default: default.to_owned(),
            allowed: allowed.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert_eq!(
            parameters(TEMPLATE),
            [parameter("Kind", "off", &["off", "carry"]), parameter("Size", "3", &[])]
        );
    }
}

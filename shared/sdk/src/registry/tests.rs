use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use tickover_core::payload::Json;
use tickover_core::task;

use super::*;
use crate::error::Failure;
use crate::options::StepOptions;
use crate::step::Attempt;

#[derive(Clone, Serialize, Deserialize)]
struct Label {
    weight: u32,
}

struct PrintLabel;

impl StepHandler for PrintLabel {
    const NAME: &'static str = "print-label";
    type Input = Label;
    type Output = String;
    type Error = Failure;

    fn options() -> StepOptions {
        StepOptions::default()
    }

    fn run(label: Label, _: &States) -> Attempt<String, Failure> {
        let attempt = async move {
            if label.weight > 30 {
                return Err(Failure::new("too_heavy", "more than 30 kg"));
            }
            Ok(format!("{} kg", label.weight))
        };
        Ok(attempt.boxed())
    }
}

const fn workflow(name: &'static str) -> Workflow<u32, u32> {
    Workflow::new(name, |_, input| async move { Ok(input) }.boxed())
}

async fn print(input: &str) -> Result<Json, StepFailed> {
    let registry = Registry::new().with_step::<PrintLabel>();
    registry.step("print-label").unwrap().run(&Json::parse(input).unwrap(), &States::default()).await
}

#[tokio::test]
async fn a_step_that_is_offered_takes_and_gives_json() {
    assert_eq!(print(r#"{"weight":3}"#).await, Ok(Json::string("3 kg")));
}

#[tokio::test]
async fn a_steps_own_error_travels_with_its_code_and_as_json() {
    let failed = print(r#"{"weight":31}"#).await.unwrap_err();
    assert_eq!(failed.failure, Failure::new("too_heavy", "more than 30 kg"));
    assert!(failed.retryable);
    assert_eq!(
        failed.error.as_ref().map(Json::as_str),
        Some(r#"{"code":"too_heavy","message":"more than 30 kg"}"#)
    );
    assert_eq!(failed.into_task_failure(), task::Failure::new("too_heavy", "more than 30 kg"));
}

#[tokio::test]
async fn an_input_that_does_not_fit_a_step_is_final_and_names_the_field() {
    let failed = print(r#"{"weight":"heavy"}"#).await.unwrap_err();
    assert_eq!(failed.failure.code, "invalid_input");
    assert!(failed.failure.message.contains("at `weight`"), "{}", failed.failure);
    assert!(!failed.retryable);
}

#[test]
fn workflows_are_found_by_name_however_they_were_given() {
    let text: Workflow<String, ()> = Workflow::new("text", |_, _| async { Ok(()) }.boxed());
    let registry = Registry::new().with([workflow("a"), workflow("b")]).with((workflow("c"), text));
    assert_eq!(registry.check(), Ok(()));
    let names: Vec<_> = registry.workflows().map(|workflow| workflow.name).collect();
    assert_eq!(names, ["a", "b", "c", "text"]);
    assert!(registry.workflow("c").is_some() && registry.workflow("d").is_none());
}

#[test]
fn what_a_worker_cannot_work_with_is_refused() {
    let check =
        |workflow: Workflow<u32, u32>| Registry::new().with(workflow).check().unwrap_err().to_string();
    assert!(check(workflow("no spaces")).contains("no spaces"));
    assert!(check(workflow("a").queue("no spaces")).contains("no spaces"));
    let short = check(workflow("a").run_timeout(Millis::new(999)));
    assert!(short.contains("run timeout") && short.contains("at least 1s"), "{short}");
    let long = check(workflow("a").execution_timeout(Millis::from_days(366)));
    assert!(long.contains("execution timeout") && long.contains("at most 365d"), "{long}");

    let twice = Registry::new().with([workflow("a"), workflow("a")]).check();
    assert_eq!(twice, Err(RegistryError::DuplicateWorkflow { name: "a".to_owned() }));
    let twice = Registry::new().with_step::<PrintLabel>().with_step::<PrintLabel>().check();
    assert_eq!(twice, Err(RegistryError::DuplicateStep { name: "print-label".to_owned() }));
}

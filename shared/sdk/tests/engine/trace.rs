//! The trace that an execution belongs to.

use std::sync::Mutex;

use tickover::Registry;
use tickover::prelude::*;
use tickover_core::id::{QueueName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::trace::TraceContext;
use tickover_service::executions::StartRequest;

use crate::scene::{Scene, execution_id};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

static SEEN: Mutex<Vec<(&str, Option<String>)>> = Mutex::new(Vec::new());

fn note(who: &'static str, trace: Option<String>) {
    SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((who, trace));
}

#[tickover::step]
async fn here(of: String) -> Result<()> {
    note(if of == "child" { "child's step" } else { "step" }, step_info().and_then(|info| info.traceparent));
    Ok(())
}

#[tickover::step(remote)]
async fn there(of: String) -> Result<String> {
    note("remote step", step_info().and_then(|info| info.traceparent));
    Ok(of)
}

#[tickover::workflow("traced-child")]
async fn child(ctx: Ctx, (): ()) -> Result<()> {
    note("child", ctx.traceparent());
    ctx.step(here("child".to_owned())).await?;
    Ok(())
}

#[tickover::workflow("traced")]
async fn traced(ctx: Ctx, (): ()) -> Result<()> {
    note("workflow", ctx.traceparent());
    ctx.step(here("parent".to_owned())).await?;
    ctx.step(there("parent".to_owned())).await?;
    ctx.child(&child, ()).id("traced-child").await?;
    Ok(())
}

#[tokio::test]
async fn the_code_its_steps_here_and_elsewhere_and_its_children_see_the_executions_trace() {
    for (carry_trace, expected) in [(true, Some(TRACE)), (false, None)] {
        SEEN.lock().unwrap().clear();
        let scene = Scene::with_limits(Limits { carry_trace, ..Limits::default() });
        let worker = scene.worker(Registry::new().with(traced).with(child).with_step::<there>());
        let queue = QueueName::parse(traced().options().queue).unwrap();
        let mut request = StartRequest::new(WorkflowName::parse("traced").unwrap(), queue);
        request.id = Some(execution_id("e"));
        request.trace = TraceContext::parse(TRACE);
        scene.service.start(request).await.unwrap();
        scene.finish(&worker, "e").await.output::<()>();
        let seen = SEEN.lock().unwrap().clone();
        for who in ["workflow", "step", "remote step", "child", "child's step"] {
            let mut of = seen.iter().filter(|(of, _)| *of == who);
            let (_, trace) = of.next().unwrap_or_else(|| panic!("{who} saw nothing: {seen:?}"));
            assert_eq!(trace.as_deref(), expected, "{who}, carried: {carry_trace}");
        }
    }
}

//! Every call by its route.

use tickover_core::by::REASON_BYTES_MAX;
use tickover_core::limits;
use tickover_service::Service;
use tickover_wire::Route;

use super::{Call, executions, turns};
use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, calls};

/// Makes a call. The names are those in its path, in order. The query is a list of names and values, already
/// percent-decoded; calls that find nothing by it ignore it. A call that takes a reason has it there.
pub async fn answer(
    service: &Service,
    route: Route,
    names: &[String],
    query: &[(String, String)],
    call: Call<'_>,
) -> Result<Answer, Problem> {
    let name = |nth: usize| names.get(nth).map_or("", String::as_str);
    let (id, which, body) = (name(0), name(1), call.body);
    if route.method() == "DELETE" {
        body::read_nothing(body)?;
    }
    let reason = query.iter().find(|(name, _)| route.takes_reason() && name == "reason");
    let told = match reason {
        Some((_, reason)) => {
            limits::check("reason_bytes", reason.len(), REASON_BYTES_MAX)?;
            Some(service.clone().because(reason))
        }
        None => None,
    };
    let service = told.as_ref().unwrap_or(service);
    match route {
        Route::Schedule => calls::schedule(service, call).await,
        Route::List => calls::list(service, query).await,
        Route::ScheduleBatch => calls::schedule_batch(service, call).await,
        Route::Describe => calls::describe(service, id).await,
        Route::Cancel => calls::cancel(service, id, body).await,
        Route::Retry => calls::retry(service, id, body).await,
        Route::Claim => calls::claim(service, id, body).await,
        Route::ClaimById => calls::claim_by_id(service, id, body).await,
        Route::Complete => calls::complete(service, id, body).await,
        Route::CompleteBatch => calls::complete_batch(service, body).await,
        Route::Fail => calls::fail(service, id, body).await,
        Route::Heartbeat => calls::heartbeat(service, id, body).await,
        Route::Release => calls::release(service, id, body).await,
        Route::ClaimWork => turns::claim(service, id, body).await,
        Route::WriteTurn => turns::write(service, id, body).await,
        Route::ReadTurn => turns::read(service, id, body).await,
        Route::StartSteps => turns::start(service, id, body).await,
        Route::CancelSteps => turns::cancel(service, id, body).await,
        Route::StorePayload => turns::store(service, id, body).await,
        Route::CreateWaitCallback => turns::callback(service, id, body).await,
        Route::CreateCallback => calls::callback_of_attempt(service, id, body).await,
        Route::CompleteCallback => calls::complete_callback(service, id, body).await,
        Route::FailCallback => calls::fail_callback(service, id, body).await,
        Route::CallbackHeartbeat => calls::callback_heartbeat(service, id, body).await,
        Route::Queues => calls::queues(service).await,
        Route::Workers => calls::workers(service).await,
        Route::Overview => calls::overview(service).await,
        Route::Failures => calls::failures(service, query).await,
        Route::History => calls::history(service, query),
        Route::Queue => calls::queue(service, id).await,
        Route::Pause => calls::pause(service, id, body).await,
        Route::Resume => calls::resume(service, id, body).await,
        Route::Kinds => calls::kinds(service, id).await,
        Route::Kind => calls::kind(service, id, which).await,
        Route::SetKind => calls::set_kind(service, id, which, body).await,
        Route::DeleteKind => calls::delete_kind(service, id, which).await,
        Route::Limits => calls::limits(service).await,
        Route::Limit => calls::limit(service, id).await,
        Route::SetLimit => calls::set_limit(service, id, body).await,
        Route::UnsetLimit => calls::unset_limit(service, id).await,
        Route::ReleasePlace => calls::release_place(service, id, which).await,
        Route::ResetRate => calls::reset_rate(service, id).await,
        Route::Start => executions::start(service, call).await,
        Route::ListExecutions => executions::list(service, query).await,
        Route::Workflows => executions::workflows(service).await,
        Route::DescribeExecution => executions::describe(service, id, query).await,
        Route::CancelExecution => executions::cancel(service, id, body).await,
        Route::Terminate => executions::terminate(service, id, body).await,
        Route::PauseExecution => executions::pause(service, id, body).await,
        Route::ResumeExecution => executions::resume(service, id, body).await,
        Route::Restart => executions::restart(service, id, body).await,
        Route::Rerun => executions::rerun(service, id, body).await,
        Route::RetryStep => executions::retry_step(service, id, which, body).await,
        Route::Export => executions::export(service, id, query).await,
        Route::Timeline => executions::timeline_of(service, id, query).await,
        Route::Runs => executions::runs(service, id, query).await,
        Route::Values => executions::values(service, id).await,
        Route::Value => executions::value(service, id, which, query).await,
        Route::Events => executions::events(service, id, query).await,
        Route::SendEvent => executions::send_event(service, id, which, query, call).await,
        Route::ClearEvents => executions::clear_events(service, id, which).await,
        Route::CreateCron => calls::create_cron(service, body).await,
        Route::ListCrons => calls::crons(service, query).await,
        Route::DescribeCron => calls::cron(service, id).await,
        Route::ReplaceCron => calls::replace_cron(service, id, body).await,
        Route::DeleteCron => calls::delete_cron(service, id).await,
        Route::PauseCron => calls::pause_cron(service, id, body).await,
        Route::ResumeCron => calls::resume_cron(service, id, body).await,
        Route::TriggerCron => calls::trigger_cron(service, id, body).await,
        Route::StartOperation => calls::start_operation(service, body).await,
        Route::ListOperations => calls::operations(service, query).await,
        Route::DescribeOperation => calls::operation(service, id).await,
        Route::StopOperation => calls::stop_operation(service, id, body).await,
        Route::ResumeOperation => calls::resume_operation(service, id, body).await,
        Route::Health => calls::health(service),
        // It is a file of the server's: no other transport has it.
        Route::Document => Err(Problem::no_route()),
    }
}

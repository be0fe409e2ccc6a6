//! The values that executions publish.

use tickover_core::error::Reject;
use tickover_service::Service;

use tickover_wire::answer::{ValueAnswer, ValuesAnswer};
use tickover_wire::read;
use tickover_wire::request::ValueQuery;

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{name, view};

/// All values that an execution has published.
pub async fn values(service: &Service, id: &str) -> Result<Answer, Problem> {
    let values = service.values(&name::execution_id(id)?).await?;
    Answer::ok(&ValuesAnswer { values: view::values(&values) })
}

/// A published value. With `wait` in the query, the call answers when there is a later version than `version`, when the
/// execution has ended, or when that time has passed.
pub async fn value(
    service: &Service,
    id: &str,
    name: &str,
    query: &[(String, String)],
) -> Result<Answer, Problem> {
    let (id, name) = (name::execution_id(id)?, name::step(name)?);
    let ValueQuery { wait, version } = read::query(query)?;
    let after = version.map_or(0, Into::into);
    let found = service.wait_for_value(&id, &name, after, wait.map(Into::into).unwrap_or_default()).await?;
    let value = found.ok_or_else(|| Reject::UnknownValue { name: name.to_string() })?;
    Answer::ok(&ValueAnswer { value: view::value(&name, &value) })
}

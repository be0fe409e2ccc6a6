//! The query of a list.

use tickover_core::error::Reject;
use tickover_core::task::Status;
use tickover_service::ports::TaskFilter;

use super::{excerpt, queue_name};

/// Tasks on a page that doesn't say how many.
pub(super) const LIMIT_DEFAULT: usize = 50;
/// Most tasks on a page.
pub(crate) const LIMIT_MAX: usize = 500;

/// Which tasks, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) filter: TaskFilter,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

/// Reads the query's names and values, already percent-decoded. Only `status` may be there more than once.
pub(crate) fn list_query(query: &[(String, String)]) -> Result<ListQuery, Reject> {
    let mut read = ListQuery { filter: TaskFilter::default(), limit: LIMIT_DEFAULT, cursor: None };
    let mut include_timed_out = false;
    for (index, (name, value)) in query.iter().enumerate() {
        let earlier = query.iter().take(index).any(|(earlier, _)| earlier == name);
        if earlier && name != "status" {
            return Err(super::object::twice(excerpt(name)));
        }
        match name.as_str() {
            "queue" => read.filter.queue = Some(queue_name("queue", value)?),
            "status" => read.filter.statuses.extend(statuses(value)?),
            "include_timed_out" => include_timed_out = flag(value)?,
            "limit" => read.limit = limit(value)?,
            "cursor" => read.cursor = Some(value.clone()),
            unknown => {
                let known =
                    "unknown parameter; expected only queue, status, include_timed_out, limit, cursor";
                return Err(Reject::field(excerpt(unknown), known));
            }
        }
    }
    let statuses = &mut read.filter.statuses;
    if include_timed_out && statuses.contains(&Status::Failed) {
        statuses.push(Status::TimedOut);
    }
    statuses.sort_unstable();
    statuses.dedup();
    Ok(read)
}

fn statuses(value: &str) -> Result<Vec<Status>, Reject> {
    let status = |name: &str| {
        Status::parse(name.trim()).ok_or_else(|| {
            let known: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
            let problem = format!("expected one or more of {}, found `{}`", known.join(", "), excerpt(name));
            Reject::field("status", problem)
        })
    };
    value.split(',').map(status).collect()
}

pub(super) fn flag(value: &str) -> Result<bool, Reject> {
    value.parse().map_err(|_| {
        Reject::field("include_timed_out", format!("expected true or false, found `{}`", excerpt(value)))
    })
}

pub(super) fn limit(value: &str) -> Result<usize, Reject> {
    value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)).ok_or_else(|| {
        let problem = format!("expected a whole number from 1 to {LIMIT_MAX}, found `{}`", excerpt(value));
        Reject::field("limit", problem)
    })
}

/// Which page of a list that has nothing else to ask for.
pub(crate) struct PageQuery {
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

/// Reads the query's names and values, already percent-decoded.
pub(crate) fn page_query(query: &[(String, String)]) -> Result<PageQuery, Reject> {
    let mut read = PageQuery { limit: LIMIT_DEFAULT, cursor: None };
    for (index, (name, value)) in query.iter().enumerate() {
        if query.iter().take(index).any(|(earlier, _)| earlier == name) {
            return Err(super::object::twice(excerpt(name)));
        }
        match name.as_str() {
            "limit" => read.limit = limit(value)?,
            "cursor" => read.cursor = Some(value.clone()),
            unknown => {
                return Err(Reject::field(
                    excerpt(unknown),
                    "unknown parameter; expected only limit, cursor",
                ));
            }
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[(&str, &str)]) -> Result<ListQuery, Reject> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        list_query(&query.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn statuses_are_separated_by_commas_or_repeated() {
        let expected = vec![Status::Pending, Status::Running];
        assert_eq!(read(&[("status", "running,pending")]).unwrap().filter.statuses, expected);
        let twice = [("status", "running"), ("status", "pending"), ("status", "running")];
        assert_eq!(read(&twice).unwrap().filter.statuses, expected);
    }

    #[test]
    fn failed_includes_timed_out_on_request_only() {
        let failed =
            |flag| read(&[("include_timed_out", flag), ("status", "failed")]).unwrap().filter.statuses;
        assert_eq!(failed("false"), [Status::Failed]);
        assert_eq!(failed("true"), [Status::Failed, Status::TimedOut]);
        assert_eq!(read(&[("include_timed_out", "true")]).unwrap().filter.statuses, []);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for (name, value) in [
            ("queue", ""),
            ("queue", "a b"),
            ("status", "done"),
            ("status", ""),
            ("include_timed_out", "1"),
            ("limit", "0"),
            ("limit", "501"),
            ("limit", "ten"),
            ("state", "pending"),
        ] {
            let Err(Reject::InvalidRequest { field, .. }) = read(&[(name, value)]) else { panic!("{name}") };
            assert_eq!(field, name);
        }
        assert!(read(&[("limit", "1"), ("limit", "2")]).unwrap_err().to_string().starts_with("limit"));
    }
}

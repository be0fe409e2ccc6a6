//! The calls of the HTTP API, whatever their transport.

#[cfg(feature = "schema")]
mod document;
#[macro_use]
mod entry;
mod table;

#[cfg(feature = "schema")]
pub use document::Documented;
pub use table::{OPERATORS_ROUTES, Route};

impl Route {
    /// Its method.
    pub fn method(self) -> &'static str {
        self.key().split_once(' ').map_or("", |(method, _)| method)
    }

    /// Its path, with names in braces.
    pub fn path(self) -> &'static str {
        self.key().split_once(' ').map_or("", |(_, path)| path)
    }

    /// Whether it changes something.
    pub fn changes(self) -> bool {
        self.method() != "GET"
    }

    /// Whether it is an operator's: see [`OPERATORS_ROUTES`].
    pub fn is_operators(self) -> bool {
        OPERATORS_ROUTES.contains(&self.key())
    }

    /// Whether its query may say why it is made (`reason`): an operator's call, and one that cancels.
    pub fn takes_reason(self) -> bool {
        self.is_operators() || matches!(self, Self::Cancel | Self::CancelExecution)
    }

    /// What stands in the braces of its path.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.path().split('/').filter_map(name)
    }

    /// The segments of its path, with these names.
    pub fn segments(self, names: &[String]) -> Vec<&str> {
        let mut names = names.iter();
        let segments = self.path().split('/').skip(1);
        segments
            .map(|segment| match name(segment) {
                Some(_) => names.next().map_or("", String::as_str),
                None => segment,
            })
            .collect()
    }
}

/// The name in a segment's braces.
fn name(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_into_the_path_in_their_order() {
        let names = ["e".to_owned(), "label[3]".to_owned()];
        let segments = ["v1", "executions", "e", "steps", "label[3]", "retry"];
        assert_eq!(Route::RetryStep.segments(&names), segments);
        assert_eq!(Route::RetryStep.names().collect::<Vec<_>>(), ["id", "name"]);
        assert_eq!((Route::RetryStep.method(), Route::RetryStep.changes()), ("POST", true));
        assert_eq!((Route::Queues.segments(&[]), Route::Queues.changes()), (vec!["v1", "queues"], false));
    }

    #[test]
    fn no_two_calls_have_the_same_route_and_an_operators_changes_something() {
        for (nth, route) in Route::ALL.iter().enumerate() {
            assert!(Route::ALL[..nth].iter().all(|other| other.key() != route.key()), "{}", route.key());
            assert!(!route.is_operators() || route.changes(), "{}", route.key());
        }
    }
}

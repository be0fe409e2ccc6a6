//! How an entry of the table of calls is read.

/// Makes [`Route`] and what is known of each call from one list. After the path are the call's group in the document, its
/// query (`finds`), its body (`takes`, or `may take` if all its fields are optional), and whether it is an operator's. Then
/// come the statuses of its answers, with their bodies.
macro_rules! routes {
    ($($(#[doc = $text:literal])* $name:ident: $method:ident $path:literal in $group:ident
        $(finds $query:ident)? $(takes $body:ident)? $(may take $optional:ident)? $(for $operators:ident)?
        { $($status:literal $($answer:ident)? = $what:literal,)* })*) => {
        /// A call of the HTTP API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Route {
            $($(#[doc = $text])* $name,)*
        }

        /// The routes of operators' calls, each as its method, a space, and its path with names in braces: the keys of
        /// these routes in API Gateway. Deployments allow them apart from the others. An operator's call steers the work of
        /// others, or changes a cron, a limit, or what counts for all tasks of a kind.
        pub const OPERATORS_ROUTES: &[&str] = &[$($(operators!($operators, $method, $path),)?)*];

        impl Route {
            /// All calls.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its method, a space, and its path with names in braces.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$name => concat!(stringify!($method), " ", $path),)*
                }
            }

            /// What the document says of it.
            #[cfg(feature = "schema")]
            pub fn documented(self) -> Documented {
                match self {
                    $(Self::$name => {
                        let mut told = documented(self, stringify!($name), stringify!($group), &[$($text),*]);
                        $(told.finds::<request::$query>();)?
                        $(told.takes::<request::$body>(false);)?
                        $(told.takes::<request::$optional>(true);)?
                        $(answers!(told, $status, $what, $($answer)?);)*
                        told
                    })*
                }
            }
        }
    };
}

/// The only mark that a call may have.
macro_rules! operators {
    (operators, $method:ident, $path:literal) => {
        concat!(stringify!($method), " ", $path)
    };
}

#[cfg(feature = "schema")]
macro_rules! answers {
    ($told:ident, $status:literal, $what:literal, $answer:ident) => {
        $told.answers::<answer::$answer>($status, $what);
    };
    ($told:ident, $status:literal, $what:literal,) => {
        $told.answers_anything($status, $what);
    };
}

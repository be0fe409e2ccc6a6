//! The compiler's errors for wrong attributes and functions. Each file under `errors` doesn't compile. The `.stderr`
//! file beside it has the expected errors.
//!
//! This test is here and not with the other tests, because `trybuild` would build the dependencies of those once more.

#[test]
fn mistakes_are_compile_errors_that_say_what_to_write_instead() {
    trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
}

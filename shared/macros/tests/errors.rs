//! What the compiler says to those who write an attribute or its function wrongly. Each file under `errors`
//! doesn't compile; beside it is what is said.
//!
//! It stands here and not with the other tests, because what those need would be built once more for it.

#[test]
fn mistakes_are_told_at_compile_time_with_what_to_write_instead() {
    trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
}

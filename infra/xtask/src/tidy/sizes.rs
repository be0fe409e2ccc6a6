//! The largest length of a Rust file.

use super::Source;

const LINES_MAX: usize = 500;

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let lines = sources.iter().map(|source| (source, source.text.lines().count()));
    let too_long = lines.filter(|(_, lines)| *lines > LINES_MAX);
    let violation = |(source, lines): (&Source, usize)| {
        format!("{}: {lines} lines, at most {LINES_MAX}: split the file", source.path.display())
    };
    too_long.map(violation).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_file_of_one_line_too_many_is_found() {
        let file = |lines| Source { path: PathBuf::from("a.rs"), text: "x\n".repeat(lines) };
        assert_eq!(check(&[file(500)]).len(), 0);
        assert_eq!(check(&[file(501)]).len(), 1);
    }
}

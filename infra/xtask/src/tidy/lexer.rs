//! Just enough of Rust's syntax to tell code from comments and literals.

/// The text with every comment and every literal's content blanked. Lines and columns stay.
pub(super) fn code_only(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    while at < code.len() {
        match text.get(at..).and_then(skipped_until) {
            Some(length) => {
                let end = (at + length).min(code.len());
                code[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// The length of the comment or literal that begins here, if one does.
fn skipped_until(rest: &str) -> Option<usize> {
    match rest.as_bytes() {
        [b'/', b'/', ..] => Some(rest.find('\n').unwrap_or(rest.len())),
        [b'/', b'*', bytes @ ..] => Some(2 + block_comment(bytes)),
        [b'"', bytes @ ..] => Some(1 + quoted(bytes, b'"')),
        [b'r', b'"' | b'#', ..] => raw_string(rest),
        [b'\'', b'\\', ..] => Some(1 + quoted(&rest.as_bytes()[1..], b'\'')),
        // Otherwise a character if its quote closes, and a lifetime if not.
        [b'\'', ..] => {
            let mut letters = rest[1..].chars();
            let letter = letters.next()?;
            (letters.next() == Some('\'')).then_some(letter.len_utf8() + 2)
        }
        _ => None,
    }
}

/// The length up to and with the end of a block comment that has begun; they nest.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 1_usize;
    let mut at = 0;
    while depth > 0 && at < rest.len() {
        match rest[at..] {
            [b'/', b'*', ..] => depth += 1,
            [b'*', b'/', ..] => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    at
}

/// The length up to and with the closing quote, in a literal where a backslash escapes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#` and so on; `None` for a raw identifier such as `r#type`.
fn raw_string(rest: &str) -> Option<usize> {
    let after_hashes = rest[1..].trim_start_matches('#');
    let hashes = rest.len() - 1 - after_hashes.len();
    let content = after_hashes.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - content.len();
    Some(content.find(&end).map_or(rest.len(), |length| begin + length + end.len()))
}

/// Where `word` stands by itself, not as a part of a longer name, in bytes.
pub(super) fn word_positions<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let bytes = code.as_bytes();
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !is_name(before) && !is_name(bytes.get(at + word.len()))
    })
}

/// The name at the beginning of the text, after white space.
pub(super) fn leading_name(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    &text[..end]
}

/// The 1-based line of a position in bytes.
pub(super) fn line_of(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("a \" b") + 1"#, "f(        ) + 1"),
            ("f(r#\"a \" b\"#)", "f(          )"),
            ("let r#type = 1;", "let r#type = 1;"),
            ("fn f<'a>(x: &'a str) { '\"' }", "fn f<'a>(x: &'a str) {     }"),
            (r"'\'' 'x'", "        "),
            ("'é' x", "     x"),
        ];
        for (text, code) in cases {
            assert_eq!(code_only(text), code, "{text}");
        }
    }

    #[test]
    fn a_word_inside_a_longer_name_is_not_the_word() {
        let code = "sleep asleep sleep_until sleep(";
        assert_eq!(word_positions(code, "sleep").collect::<Vec<_>>(), [0, 25]);
    }
}

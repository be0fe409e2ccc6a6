//! What others wrote, for a terminal: labels, keys, codes and messages may contain characters that move its cursor, change
//! its settings, or reorder what it shows (CWE-150).

use std::fmt::Write as _;

/// A text for people, in which only line ends remain of all controls. The others are shown as JSON's escapes, as in
/// `\u001b`.
pub(crate) fn text(text: &str) -> String {
    escaped(text, |c| is_control(c) && c != '\n')
}

/// A JSON text with the same value. Controls of ASCII are only between its tokens: JSON itself escapes them in strings.
pub(crate) fn json(json: &str) -> String {
    escaped(json, |c| is_control(c) && (!c.is_ascii() || c == '\u{7f}'))
}

/// C0, DEL, C1, and what changes the direction of text.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            // Writing to a string can't fail. All of them are below U+10000.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_reaches_a_terminal_but_the_end_of_a_line() {
        let shown = text("a\u{1b}[2J\r\n\u{9b}31m\u{7f}\u{202e}é\0");
        assert_eq!(shown, "a\\u001b[2J\\u000d\n\\u009b31m\\u007f\\u202eé\\u0000");
        for code in 0..=0x3000 {
            let c = char::from_u32(code).unwrap();
            let is_kept = c == '\n' || !is_control(c);
            assert_eq!(text(&c.to_string()).chars().eq([c]), is_kept, "{code:x}");
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"a\u{9b}": "\u{7f}\u{1b}\u{2066}\n"});
        let shown = json(&value.to_string());
        assert!(!shown.chars().any(is_control), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}

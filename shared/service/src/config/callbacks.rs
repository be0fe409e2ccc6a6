//! The variables of callbacks. A problem never shows a secret.

use super::{CALLBACK_SECRET, CALLBACK_URL, Reader, is_url};
use crate::callbacks::{SECRET_MIN, Secret, Secrets};

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    pub(super) fn callback_secrets(&mut self) -> Secrets {
        let Some(text) = self.optional(CALLBACK_SECRET) else { return Secrets::Off };
        let given: Vec<&str> = text.split(',').map(str::trim).collect();
        if let Some(short) = given.iter().map(|secret| secret.len()).find(|length| *length < SECRET_MIN) {
            self.problems.push(format!(
                "{CALLBACK_SECRET}: each secret needs at least {SECRET_MIN} bytes, and one has {short}"
            ));
        }
        Secrets::Given(given.into_iter().map(Secret::of).collect())
    }

    pub(super) fn callback_url(&mut self) -> Option<String> {
        let url = self.unless_none(CALLBACK_URL)?;
        if !is_url(&url) {
            self.problems.push(format!("{CALLBACK_URL} must be a URL, not {url:?}"));
        }
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(text: &str) -> (Secrets, Vec<String>) {
        let lookup = |name: &str| (name == CALLBACK_SECRET).then(|| text.to_owned());
        let mut reader = Reader { lookup, problems: vec![] };
        (reader.callback_secrets(), reader.problems)
    }

    #[test]
    fn the_address_of_callbacks_is_a_url_or_none() {
        let url = |text: &str| {
            let lookup = |name: &str| (name == CALLBACK_URL).then(|| text.to_owned());
            let mut reader = Reader { lookup, problems: vec![] };
            (reader.callback_url(), reader.problems.len())
        };
        assert_eq!(url("https://api.example.com"), (Some("https://api.example.com".to_owned()), 0));
        for none in ["", "none"] {
            assert_eq!(url(none), (None, 0));
        }
        assert_eq!(url("api.example.com").1, 1);
    }

    #[test]
    fn secrets_of_callbacks_are_separated_by_commas_and_none_is_short() {
        let (old, new) = ("o".repeat(SECRET_MIN), "n".repeat(SECRET_MIN));
        assert!(matches!(secrets("").0, Secrets::Off));
        let (Secrets::Given(given), problems) = secrets(&format!("{new}, {old}")) else { panic!("none") };
        assert_eq!((given.len(), problems.len()), (2, 0));
        let short = "s".repeat(SECRET_MIN - 1);
        for text in [short.clone(), format!("{new},{short}"), format!("{new},")] {
            let problems = secrets(&text).1;
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(!problems[0].contains("sss") && problems[0].contains("32 bytes"), "{problems:?}");
        }
    }
}

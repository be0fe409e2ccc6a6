//! The variables of callbacks.

use super::{CALLBACK_URL, Reader, is_url};

impl<F: Fn(&str) -> Option<String>> Reader<F> {
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
}

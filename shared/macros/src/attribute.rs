//! Parses the text between an attribute's parentheses: a name, then keys with their values.

use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Lit, LitStr, Path, Result, Token, parenthesized};

/// An attribute's arguments, not yet checked.
pub(crate) struct Attribute {
    /// The name, which comes first.
    pub(crate) name: Option<LitStr>,
    /// The keys, in order.
    pub(crate) entries: Vec<Entry>,
}

/// One key with its value.
pub(crate) struct Entry {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

/// The value of a key.
pub(crate) enum Value {
    /// `key`
    Nothing,
    /// `key = "text"`
    Text(LitStr),
    /// `key = some::path`
    Path(Path),
    /// `key("text", "text")`
    List(Vec<LitStr>),
    /// `key(name = "text", other = 5)`, or `key(50, name = "text")`
    Parts(Vec<Part>),
    /// `key = 3`: no key takes it.
    Other,
}

/// One of the values in a key's parentheses.
pub(crate) struct Part {
    /// Absent for a value that stands alone.
    pub(crate) name: Option<Ident>,
    pub(crate) value: Lit,
}

/// One argument.
enum Argument {
    Name(LitStr),
    Entry(Entry),
}

/// Names of options over HTTP and in other systems, each with the key that it has here.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("timeout_scope", "scope"),
    ("start_to_close_timeout", "attempt_timeout"),
    ("heartbeat_timeout", "heartbeat"),
    ("schedule_to_start_timeout", "schedule_to_start"),
    ("retries", "retry"),
    ("execution_timeout", "timeout"),
];

impl Attribute {
    /// Parses the arguments. `keys` has the known keys, for errors.
    pub(crate) fn read(tokens: proc_macro2::TokenStream, keys: &[&str]) -> Result<Self> {
        let arguments = Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut attribute = Self { name: None, entries: Vec::new() };
        for argument in arguments {
            match argument {
                Argument::Name(name) if attribute.name.is_none() && attribute.entries.is_empty() => {
                    attribute.name = Some(name);
                }
                Argument::Name(name) => {
                    return Err(Error::new(
                        name.span(),
                        "only the name stands without a key, and it comes first: \
                         `(\"name\", timeout = \"30m\")`",
                    ));
                }
                Argument::Entry(entry) => attribute.add(entry, keys)?,
            }
        }
        Ok(attribute)
    }

    fn add(&mut self, entry: Entry, keys: &[&str]) -> Result<()> {
        let key = entry.key.to_string();
        if key == "name" {
            let message = "the name comes first and without a key: `(\"order-fulfilment\", …)`";
            return Err(Error::new(entry.key.span(), message));
        }
        if !keys.contains(&key.as_str()) {
            let known = OTHER_NAMES.iter().find(|(other, name)| *other == key && keys.contains(name));
            let hint = known.map_or("; the".to_owned(), |(_, name)| format!("; did you mean `{name}`? The"));
            let message = format!("`{key}` is not known here{hint} keys are {}", keys.join(", "));
            return Err(Error::new(entry.key.span(), message));
        }
        // A step may be limited by several keys.
        if key != "concurrency" && self.entries.iter().any(|earlier| earlier.key == entry.key) {
            return Err(Error::new(entry.key.span(), format!("`{key}` is given twice")));
        }
        self.entries.push(entry);
        Ok(())
    }
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(LitStr) {
            return input.parse().map(Self::Name);
        }
        let key: Ident = input
            .parse()
            .map_err(|error| Error::new(error.span(), "a name in quotes or a key was expected"))?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Value::after_equals(input, &key)?
        } else if input.peek(syn::token::Paren) {
            let texts;
            parenthesized!(texts in input);
            Value::in_parentheses(&texts, &key)?
        } else {
            Value::Nothing
        };
        Ok(Self::Entry(Entry { key, value }))
    }
}

impl Parse for Part {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.peek(Ident).then(|| input.parse()).transpose()?;
        if name.is_some() {
            input.parse::<Token![=]>()?;
        }
        Ok(Self { name, value: input.parse()? })
    }
}

impl Value {
    /// A list of texts, or parts of which one has a name or isn't a text.
    fn in_parentheses(input: ParseStream<'_>, key: &Ident) -> Result<Self> {
        let parts = Punctuated::<Part, Token![,]>::parse_terminated(input).map_err(|error| {
            let message =
                format!("texts in quotes were expected: `{key}(\"one\", \"two\")`, or values with names");
            Error::new(error.span(), message)
        })?;
        let text = |part: &Part| match (&part.name, &part.value) {
            (None, Lit::Str(text)) => Some(text.clone()),
            _ => None,
        };
        let texts: Option<Vec<_>> = parts.iter().map(text).collect();
        Ok(texts.map_or_else(|| Self::Parts(parts.into_iter().collect()), Self::List))
    }

    fn after_equals(input: ParseStream<'_>, key: &Ident) -> Result<Self> {
        if input.peek(LitStr) {
            return input.parse().map(Self::Text);
        }
        // The key is checked before its value: its own name may be the mistake.
        if input.peek(Lit) {
            return input.parse::<Lit>().map(|_| Self::Other);
        }
        if input.peek(Ident) || input.peek(Token![::]) || input.peek(Token![crate]) {
            return input.call(Path::parse_mod_style).map(Self::Path);
        }
        Err(input.error(format!("a text in quotes was expected: `{key} = \"…\"`")))
    }
}

impl Entry {
    /// The value of a key that takes a text.
    pub(crate) fn text(&self, example: &str) -> Result<&LitStr> {
        match &self.value {
            Value::Text(text) => Ok(text),
            Value::Nothing | Value::Path(_) | Value::List(_) | Value::Parts(_) | Value::Other => {
                Err(self.expected(&format!("`{} = \"{example}\"`", self.key)))
            }
        }
    }

    /// The value of a key that takes a function's path.
    pub(crate) fn path(&self) -> Result<&Path> {
        match &self.value {
            Value::Path(path) => Ok(path),
            Value::Nothing | Value::Text(_) | Value::List(_) | Value::Parts(_) | Value::Other => {
                Err(self.expected(&format!("a function without quotes: `{} = refund`", self.key)))
            }
        }
    }

    /// The value of a key that takes texts.
    pub(crate) fn list(&self, example: &str) -> Result<&[LitStr]> {
        match &self.value {
            Value::List(texts) if !texts.is_empty() => Ok(texts),
            Value::List(_)
            | Value::Parts(_)
            | Value::Nothing
            | Value::Text(_)
            | Value::Path(_)
            | Value::Other => Err(self.expected(&format!("`{}(\"{example}\")`, one or more", self.key))),
        }
    }

    /// The value of a key that takes parts.
    pub(crate) fn parts(&self, example: &str) -> Result<&[Part]> {
        match &self.value {
            Value::Parts(parts) => Ok(parts),
            Value::List(_) | Value::Nothing | Value::Text(_) | Value::Path(_) | Value::Other => {
                Err(self.expected(&format!("`{}({example})`", self.key)))
            }
        }
    }

    /// A key that takes no value.
    pub(crate) fn flag(&self) -> Result<bool> {
        match &self.value {
            Value::Nothing => Ok(true),
            Value::Text(_) | Value::Path(_) | Value::List(_) | Value::Parts(_) | Value::Other => {
                let message = format!("`{}` takes no value: write it alone", self.key);
                Err(Error::new(self.key.span(), message))
            }
        }
    }

    fn expected(&self, form: &str) -> Error {
        Error::new(self.key.span(), format!("`{}` is written as {form}", self.key))
    }
}

//! The options of flow control: they become calls of a builder, because their keys depend on the function's arguments.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Error, Expr, Ident, Lit, LitInt, LitStr, Result};
use tickover_core::batch::{BATCH_MAX, Batch, BatchError};
use tickover_core::duration::Millis;
use tickover_core::flow::{CONCURRENCY_KEYS_MAX, CONCURRENCY_MAX, Priority, RATE_MAX, RATE_PERIOD_MAX};
use tickover_core::id::{Capability, FlowKey};

use crate::attribute::{Entry, Part};

const CONCURRENCY: &str = r#"key = "order.customer", limit = 5"#;
const BATCH: &str = r#"50, within = "2s""#;
const RATE: &str = r#"constant = "smtp", limit = 100, per = "1m""#;

/// What a step's or a workflow's attribute says of flow control.
#[derive(Default)]
pub(crate) struct Flow {
    /// The keys, as variables: they are made before the arguments of a step move into it.
    keys: Vec<TokenStream>,
    calls: Vec<TokenStream>,
    /// The first of its keys, for errors.
    first: Option<Ident>,
    concurrency_keys: usize,
}

/// Where a key's text comes from.
enum Source {
    /// The same for all.
    Constant(LitStr),
    /// An expression of the function's arguments.
    Expression(Expr),
}

impl Flow {
    /// Reads a key, if it is one of these.
    pub(crate) fn read(&mut self, entry: &Entry) -> Result<bool> {
        let call = match entry.key.to_string().as_str() {
            "concurrency" => self.concurrency(entry)?,
            "rate" => self.rate(entry)?,
            "priority" => priority(entry)?,
            "fairness_key" => {
                let key = self.key(&Source::Expression(expression(entry.text("order.customer")?)?));
                quote!(.fairness_key(#key))
            }
            "requires" => requires(entry)?,
            _ => return Ok(false),
        };
        self.calls.push(call);
        self.first.get_or_insert_with(|| entry.key.clone());
        Ok(true)
    }

    /// Its first key, if there is one.
    pub(crate) const fn first(&self) -> Option<&Ident> {
        self.first.as_ref()
    }

    /// The variables of the keys. The function's arguments have their names there.
    pub(crate) fn keys(&self) -> &[TokenStream] {
        &self.keys
    }

    /// The calls of the builder.
    pub(crate) fn calls(&self) -> &[TokenStream] {
        &self.calls
    }

    /// A key's variable.
    fn key(&mut self, source: &Source) -> Ident {
        let name = format_ident!("__key_{}", self.keys.len());
        let key = match source {
            Source::Constant(text) => quote!(#text),
            Source::Expression(expression) => quote!(#expression),
        };
        self.keys.push(quote!(let #name = ::std::string::ToString::to_string(&#key);));
        name
    }

    fn concurrency(&mut self, entry: &Entry) -> Result<TokenStream> {
        let parts = Parts::read(entry, CONCURRENCY, &["key", "constant", "limit"])?;
        let source = parts.source()?;
        let limit = parts.whole("limit", u32::from(CONCURRENCY_MAX))?;
        let limit = LitInt::new(&format!("{limit}u16"), Span::call_site());
        self.concurrency_keys += 1;
        if self.concurrency_keys > CONCURRENCY_KEYS_MAX {
            let message = format!("`concurrency` can be given for at most {CONCURRENCY_KEYS_MAX} keys");
            return Err(Error::new(entry.key.span(), message));
        }
        let key = self.key(&source);
        Ok(quote!(.concurrency(&#key, #limit)))
    }

    fn rate(&mut self, entry: &Entry) -> Result<TokenStream> {
        let parts = Parts::read(entry, RATE, &["key", "constant", "limit", "per", "burst"])?;
        let source = parts.source()?;
        let limit = parts.whole("limit", RATE_MAX)?;
        let per = match parts.text("per")? {
            None => 1_000,
            Some(text) => {
                let per = Millis::parse(&text.value())
                    .map_err(|error| Error::new(text.span(), error.to_string()))?;
                if per > RATE_PERIOD_MAX {
                    return Err(Error::new(
                        text.span(),
                        format!("`per` can be at most {RATE_PERIOD_MAX}, not {per}"),
                    ));
                }
                per.as_u64()
            }
        };
        let burst = parts.optional_whole("burst", limit)?.map(|burst| quote!(.burst(#burst)));
        let key = self.key(&source);
        Ok(quote!(.rate(&#key, #limit, ::tickover::__private::Millis::new(#per)) #burst))
    }
}

/// The named values in a key's parentheses.
struct Parts<'a> {
    entry: &'a Entry,
    example: &'static str,
    named: Vec<(&'a Ident, &'a Lit)>,
}

impl<'a> Parts<'a> {
    fn read(entry: &'a Entry, example: &'static str, names: &[&str]) -> Result<Self> {
        let mut parts: Vec<(&Ident, &Lit)> = Vec::new();
        for Part { name, value } in entry.parts(example)? {
            let Some(name) = name else {
                return Err(Error::new(value.span(), format!("each value has a name: `{example}`")));
            };
            if !names.contains(&name.to_string().as_str()) {
                let message = format!("`{name}` is not known here; `{}` has {}", entry.key, names.join(", "));
                return Err(Error::new(name.span(), message));
            }
            if parts.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
            parts.push((name, value));
        }
        Ok(Self { entry, example, named: parts })
    }

    fn find(&self, wanted: &str) -> Option<&'a Lit> {
        self.named.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }

    fn text(&self, wanted: &str) -> Result<Option<&'a LitStr>> {
        match self.find(wanted) {
            None => Ok(None),
            Some(Lit::Str(text)) => Ok(Some(text)),
            Some(other) => Err(Error::new(other.span(), format!("`{wanted}` is a text in quotes"))),
        }
    }

    fn whole(&self, wanted: &str, most: u32) -> Result<u32> {
        let number = self.optional_whole(wanted, most)?;
        number.ok_or_else(|| self.missing(&format!("`{wanted}`")))
    }

    fn optional_whole(&self, wanted: &str, most: u32) -> Result<Option<u32>> {
        let Some(value) = self.find(wanted) else { return Ok(None) };
        let number = match value {
            Lit::Int(number) => {
                number.base10_parse::<u32>().ok().filter(|number| (1..=most).contains(number))
            }
            _ => None,
        };
        let message = || Error::new(value.span(), format!("`{wanted}` is a whole number from 1 to {most}"));
        number.map(Some).ok_or_else(message)
    }

    fn source(&self) -> Result<Source> {
        match (self.text("key")?, self.text("constant")?) {
            (Some(key), None) => expression(key).map(Source::Expression),
            (None, Some(text)) => {
                let checked = FlowKey::parse(text.value());
                checked.map_err(|error| Error::new(text.span(), format!("a key {error}")))?;
                Ok(Source::Constant(text.clone()))
            }
            (None, None) => Err(self.missing("`key` (an expression) or `constant` (the same key for all)")),
            (Some(_), Some(text)) => {
                Err(Error::new(text.span(), "give only one of `key` and `constant`: they are the same thing"))
            }
        }
    }

    fn missing(&self, what: &str) -> Error {
        let key = &self.entry.key;
        Error::new(key.span(), format!("`{key}` needs {what}: `{key}({})`", self.example))
    }
}

/// A text that is an expression of the function's arguments.
fn expression(text: &LitStr) -> Result<Expr> {
    text.parse::<Expr>().map_err(|_| {
        let message = format!(
            "`{}` is no expression; a key is one of the function's arguments or made of them: `order.customer`",
            text.value()
        );
        Error::new(text.span(), message)
    })
}

fn priority(entry: &Entry) -> Result<TokenStream> {
    let text = entry.text("high")?;
    let known = Priority::ALL.into_iter().find(|priority| priority.as_str() == text.value());
    let variant = match known {
        Some(Priority::High) => quote!(High),
        Some(Priority::Normal) => quote!(Normal),
        Some(Priority::Low) => quote!(Low),
        None => {
            let message = format!("`{}` is no priority: it is `high`, `normal` or `low`", text.value());
            return Err(Error::new(text.span(), message));
        }
    };
    Ok(quote!(.priority(::tickover::Priority::#variant)))
}

/// How many tasks run together, and how long the first one waits for others.
pub(crate) fn batch(entry: &Entry) -> Result<Batch> {
    let (mut max, mut within) = (None, None);
    for Part { name, value } in entry.parts(BATCH)? {
        match (name, value) {
            (None, Lit::Int(number)) if max.is_none() => max = Some(number),
            (Some(name), Lit::Str(text)) if name == "within" && within.is_none() => within = Some(text),
            _ => return Err(Error::new(value.span(), format!("`batch` is written as `batch({BATCH})`"))),
        }
    }
    let Some(number) = max else {
        let message = format!("`batch` needs the most tasks that run together: `batch({BATCH})`");
        return Err(Error::new(entry.key.span(), message));
    };
    let count = number.base10_parse().map_err(|_| {
        Error::new(number.span(), format!("a batch has 1 to {BATCH_MAX} tasks, not {number}"))
    })?;
    let wait = within.map_or(Ok(Millis::ZERO), |text| {
        Millis::parse_allowing_zero(&text.value()).map_err(|error| Error::new(text.span(), error.to_string()))
    })?;
    Batch::new(count, wait).map_err(|error| match (error, within) {
        (BatchError::Within(_), Some(text)) => Error::new(text.span(), error),
        (BatchError::Size(_) | BatchError::Within(_), _) => Error::new(number.span(), error),
    })
}

fn requires(entry: &Entry) -> Result<TokenStream> {
    let names = entry.list("gpu")?;
    for name in names {
        Capability::parse(name.value())
            .map_err(|error| Error::new(name.span(), format!("the name of a capability {error}")))?;
    }
    Ok(quote!(.requires([#(#names),*])))
}

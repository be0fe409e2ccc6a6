//! The service's metrics, read from its code.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use syn::parse::{Parse, ParseStream};
use syn::visit::{self, Visit};
use syn::{Expr, ExprArray, ExprLit, ItemConst, ItemFn, Lit, LitStr, Local, Macro, Pat, Token};

use crate::lint;

/// The only file that records metrics.
pub(super) const METRICS: &str = "shared/service/src/metric.rs";
/// The file that writes them for `CloudWatch`.
pub(super) const EMBEDDED: &str = "shared/lambda/src/metrics.rs";
/// The files with the names of kinds of timeouts.
pub(super) const VALUES: [&str; 2] = ["shared/core/src/timeout.rs", "shared/core/src/execution/outcome.rs"];
/// The list of the metrics that are written by default.
const ESSENTIAL: &str = "ESSENTIAL";
const MACROS: [&str; 3] = ["counter", "gauge", "histogram"];

/// What the functions emit.
pub(super) struct Recorded {
    pub(super) namespace: String,
    /// The texts that labels may have as their values.
    pub(super) values: BTreeSet<String>,
    /// The metrics that are written by default.
    pub(super) essential: BTreeSet<String>,
    /// The dimension that each metric has, beside its labels.
    function: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Recorded {
    pub(super) fn read() -> Result<Self> {
        Self::read_by(lint::read)
    }

    /// Reads files by their paths from the root.
    pub(super) fn read_by(read: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let parse = |path: &str| -> Result<Reader> {
            let file = syn::parse_file(&read(path)?).with_context(|| format!("could not parse {path}"))?;
            let mut reader = Reader::default();
            reader.visit_file(&file);
            match reader.problem {
                Some(problem) => Err(problem).with_context(|| path.to_owned()),
                None => Ok(reader),
            }
        };
        let embedded = parse(EMBEDDED)?;
        let constant = |name: &str| {
            let value = embedded.constants.get(name).cloned();
            value.with_context(|| format!("{EMBEDDED} has no constant {name}"))
        };
        let metrics = parse(METRICS)?;
        let mut labels = BTreeMap::new();
        for (name, recorded) in metrics.recorded {
            let metric = metrics.constants.get(&name).with_context(|| format!("{METRICS}: no {name}"))?;
            let known = labels.entry(metric.clone()).or_insert_with(|| recorded.clone());
            ensure!(*known == recorded, "{METRICS} records {metric} with {known:?} and with {recorded:?}");
        }
        let essential =
            metrics.essential.iter().filter_map(|name| metrics.constants.get(name).cloned()).collect();
        let mut values = metrics.texts;
        for path in VALUES {
            values.extend(parse(path)?.texts);
        }
        Ok(Self {
            namespace: constant("NAMESPACE")?,
            values,
            essential,
            function: constant("FUNCTION")?,
            labels,
        })
    }

    /// The dimensions of a metric; `None` if nothing records it.
    pub(super) fn dimensions(&self, metric: &str) -> Option<BTreeSet<&str>> {
        let labels = self.labels.get(metric)?;
        Some(labels.iter().chain([&self.function]).map(String::as_str).collect())
    }
}

/// What a file records.
#[derive(Default)]
struct Reader {
    /// Constants that are texts.
    constants: BTreeMap<String, String>,
    /// The constants in the list of metrics that are written by default.
    essential: Vec<String>,
    /// The constants of metrics, each with the labels of one record of it.
    recorded: Vec<(String, BTreeSet<String>)>,
    /// All texts in functions.
    texts: BTreeSet<String>,
    /// Of the current function: its variables that are lists of labels.
    lists: BTreeMap<String, BTreeSet<String>>,
    problem: Option<anyhow::Error>,
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &*item.expr {
            self.constants.insert(item.ident.to_string(), text.value());
        }
        if let Expr::Array(list) = &*item.expr
            && item.ident == ESSENTIAL
        {
            let names = list.elems.iter().filter_map(|element| match element {
                Expr::Path(path) => path.path.get_ident(),
                _ => None,
            });
            self.essential.extend(names.map(ToString::to_string));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.lists.clear();
        visit::visit_item_fn(self, item);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if let (Pat::Ident(name), Some(init)) = (&local.pat, &local.init)
            && let Expr::Array(list) = &*init.expr
            && let Some(labels) = labels(list)
        {
            self.lists.insert(name.ident.to_string(), labels);
        }
        visit::visit_local(self, local);
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.texts.insert(text.value());
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        if !MACROS.iter().any(|name| call.path.is_ident(name)) {
            return;
        }
        match call.parse_body::<Record>() {
            Ok(Record { metric, labels, list }) => {
                let listed = list.and_then(|name| self.lists.get(&name).cloned()).unwrap_or_default();
                self.recorded.push((metric, labels.into_iter().chain(listed).collect()));
            }
            Err(error) => self.problem = Some(error.into()),
        }
    }
}

/// The labels in `[("queue", …), ("outcome", …)]`; `None` if it is another list.
fn labels(list: &ExprArray) -> Option<BTreeSet<String>> {
    let names = list.elems.iter().map(|element| match element {
        Expr::Tuple(pair) => text(pair.elems.first()?),
        _ => None,
    });
    names.collect()
}

fn text(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// The arguments of `counter!(METRIC, "label" => value, …)` or `counter!(METRIC, &list)`.
struct Record {
    metric: String,
    labels: Vec<String>,
    list: Option<String>,
}

impl Parse for Record {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let metric = input.parse::<syn::Ident>()?.to_string();
        let (mut labels, mut list) = (vec![], None);
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            if input.parse::<Option<Token![&]>>()?.is_some() {
                list = Some(input.parse::<syn::Ident>()?.to_string());
                continue;
            }
            labels.push(input.parse::<LitStr>()?.value());
            input.parse::<Token![=>]>()?;
            input.parse::<Expr>()?;
        }
        Ok(Self { metric, labels, list })
    }
}

//! What a template watches: the alarms, and the graphs of dashboards.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::lint::template::{blocks, title};

/// One metric that is watched.
pub(super) struct Series {
    /// The alarm's name, or the graph's title.
    pub(super) by: String,
    pub(super) source: Source,
    pub(super) namespace: String,
    pub(super) metric: String,
    pub(super) dimensions: BTreeSet<String>,
    /// The dimensions with a value, as the template writes it.
    pub(super) values: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Alarm,
    /// A metric in a dashboard.
    Graph,
    /// A search for metrics in a dashboard, by parts of their values.
    Search,
}

/// Everything that a template watches.
pub(super) fn all(text: &str) -> Result<Vec<Series>> {
    let mut all = vec![];
    for block in blocks(text, "Resources") {
        if block.contains("Type: AWS::CloudWatch::Alarm") {
            all.push(alarm(block).with_context(|| title(block).to_owned())?);
        } else if block.contains("Type: AWS::CloudWatch::Dashboard") {
            all.extend(dashboard(block).with_context(|| title(block).to_owned())?);
        }
    }
    Ok(all)
}

fn alarm(block: &str) -> Result<Series> {
    let setting = |name: &str| {
        let prefix = format!("      {name}: ");
        let found = block.lines().find_map(|line| line.strip_prefix(&prefix));
        found.with_context(|| format!("no {name} in one line"))
    };
    let values: Vec<(String, String)> = setting("Dimensions")?
        .split("{ Name: ")
        .skip(1)
        .filter_map(|dimension| dimension.rsplit_once(" }")?.0.split_once(", Value: "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    ensure!(!values.is_empty(), "no dimensions");
    Ok(Series {
        by: title(block).to_owned(),
        source: Source::Alarm,
        namespace: setting("Namespace")?.to_owned(),
        metric: setting("MetricName")?.to_owned(),
        dimensions: values.iter().map(|(name, _)| name.clone()).collect(),
        values,
    })
}

fn dashboard(block: &str) -> Result<Vec<Series>> {
    let (_, body) = block.split_once("DashboardBody: !Sub |\n").context("no body")?;
    // Lines of the body are indented further than the property's name.
    let body: String = body.lines().take_while(|line| line.starts_with("        ")).collect();
    let body: Value = serde_json::from_str(&body).context("the body isn't JSON")?;
    let mut all = vec![];
    for widget in body["widgets"].as_array().context("no widgets")? {
        let properties = &widget["properties"];
        let by = properties["title"].as_str().context("a widget without a title")?;
        let metrics = properties["metrics"].as_array().context("no metrics")?;
        ensure!(!metrics.is_empty(), "{by} shows nothing");
        for metric in metrics {
            let parts = metric.as_array().context("a metric that isn't a list")?;
            let series = match parts.first().and_then(|first| first["expression"].as_str()) {
                Some(expression) => search(by, expression),
                None => graph(by, parts),
            };
            all.push(series.with_context(|| format!("{by}: {metric}"))?);
        }
    }
    ensure!(!all.is_empty(), "no graphs");
    Ok(all)
}

/// `[namespace, metric, dimension, value, …]`.
fn graph(by: &str, parts: &[Value]) -> Result<Series> {
    let words: Option<Vec<String>> = parts.iter().map(|part| part.as_str().map(str::to_owned)).collect();
    let words = words.context("not a list of texts")?;
    let [namespace, metric, dimensions @ ..] = words.as_slice() else { anyhow::bail!("too short") };
    let pairs = dimensions.chunks(2).map(|pair| match pair {
        [name, value] => Ok((name.clone(), value.clone())),
        _ => anyhow::bail!("a dimension without a value"),
    });
    let values = pairs.collect::<Result<Vec<_>>>()?;
    Ok(Series {
        by: by.to_owned(),
        source: Source::Graph,
        namespace: namespace.clone(),
        metric: metric.clone(),
        dimensions: values.iter().map(|(name, _)| name.clone()).collect(),
        values,
    })
}

/// `SEARCH('{Namespace,dimension,…} dimension="value" MetricName="name"', 'Sum', 60)`.
fn search(by: &str, expression: &str) -> Result<Series> {
    let inner = expression.strip_prefix("SEARCH('{").context("not a search")?;
    let (schema, rest) = inner.split_once("} ").context("no list of dimensions")?;
    let (terms, _) = rest.split_once('\'').context("no end")?;
    let mut schema = schema.split(',').map(str::to_owned);
    let namespace = schema.next().context("no namespace")?;
    let terms = terms.split_whitespace().map(|term| {
        let (name, value) = term.split_once('=').context("a term without a property")?;
        Ok((name.to_owned(), value.trim_matches('"').to_owned()))
    });
    let (metric, values): (Vec<_>, Vec<_>) =
        terms.collect::<Result<Vec<_>>>()?.into_iter().partition(|(name, _)| name == "MetricName");
    let dimensions: BTreeSet<String> = schema.collect();
    let unknown = values.iter().find(|(name, _)| !dimensions.contains(name));
    ensure!(unknown.is_none(), "no such dimension: {unknown:?}");
    let [(_, metric)] = metric.as_slice() else { anyhow::bail!("not one name of a metric") };
    Ok(Series {
        by: by.to_owned(),
        source: Source::Search,
        namespace,
        metric: metric.clone(),
        dimensions,
        values,
    })
}

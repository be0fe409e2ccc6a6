//! What a template watches: the alarms, and the graphs of dashboards.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::template::{blocks, title};

/// One metric that is watched.
pub(crate) struct Series {
    /// The alarm's name, or the graph's title.
    pub(crate) by: String,
    pub(crate) source: Source,
    pub(crate) namespace: String,
    pub(crate) metric: String,
    pub(crate) dimensions: BTreeSet<String>,
    /// The dimensions with a value, as the template writes it.
    pub(crate) values: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Alarm,
    /// A metric in a dashboard.
    Graph,
    /// A search for metrics in a dashboard, by parts of their values.
    Search,
}

/// Everything that a template watches.
pub(crate) fn all(text: &str) -> Result<Vec<Series>> {
    let mut all = vec![];
    for block in blocks(text, "Resources") {
        if block.contains("Type: AWS::CloudWatch::Alarm") {
            all.extend(alarm(block).with_context(|| title(block).to_owned())?);
        } else if block.contains("Type: AWS::CloudWatch::Dashboard") {
            all.extend(dashboard(block).with_context(|| title(block).to_owned())?);
        }
    }
    Ok(all)
}

/// The alarm's metric, or those of its expression, each of which has a line.
fn alarm(block: &str) -> Result<Vec<Series>> {
    let by = title(block);
    if !block.contains("\n      Metrics:\n") {
        let setting = |name: &str| {
            let prefix = format!("      {name}: ");
            let found = block.lines().find_map(|line| line.strip_prefix(&prefix));
            found.with_context(|| format!("no {name} in one line"))
        };
        return Ok(vec![of_alarm(
            by,
            setting("Namespace")?,
            setting("MetricName")?,
            setting("Dimensions")?,
        )?]);
    }
    let metrics = block.lines().filter(|line| line.contains("MetricStat: "));
    let all = metrics.map(|line| {
        let setting = |name: &str| line.split_once(&format!(" {name}: ")).map(|(_, rest)| rest);
        let word = |name: &str| setting(name)?.split_once(',').map(|(word, _)| word);
        let namespace = word("Namespace").context("no Namespace")?;
        let metric = word("MetricName").context("no MetricName")?;
        let (dimensions, _) =
            setting("Dimensions").and_then(|rest| rest.split_once("}]")).context("no Dimensions")?;
        of_alarm(by, namespace, metric, &format!("{dimensions}}}"))
    });
    let all = all.collect::<Result<Vec<_>>>()?;
    ensure!(!all.is_empty(), "no metrics");
    uses_all(block)?;
    Ok(all)
}

/// The expression names each of the alarm's metrics.
fn uses_all(block: &str) -> Result<()> {
    let expression =
        block.lines().find_map(|line| line.split_once("Expression: \"")).context("no expression")?.1;
    let words: BTreeSet<&str> = expression.split(|one: char| !one.is_ascii_alphanumeric()).collect();
    for metric in block.lines().filter(|line| line.contains("MetricStat: ")) {
        let id = metric.split_once("Id: ").and_then(|(_, rest)| rest.split_once(',')).context("no Id")?.0;
        ensure!(words.contains(id), "its expression doesn't use {id}");
        ensure!(metric.contains("ReturnData: false"), "{id} is a second result");
    }
    Ok(())
}

/// What an alarm watches. The dimensions are a list of `{ Name: …, Value: … }`.
fn of_alarm(by: &str, namespace: &str, metric: &str, dimensions: &str) -> Result<Series> {
    let values: Vec<(String, String)> = dimensions
        .split("{ Name: ")
        .skip(1)
        .filter_map(|dimension| dimension.rsplit_once(" }")?.0.split_once(", Value: "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    ensure!(!values.is_empty(), "no dimensions");
    Ok(Series {
        by: by.to_owned(),
        source: Source::Alarm,
        namespace: namespace.to_owned(),
        metric: metric.to_owned(),
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

/// `SEARCH('{Namespace,dimension,…} dimension=value MetricName="name"', 'Sum', 60)`. A value in quotes keeps them, because
/// it is searched for as a whole name.
fn search(by: &str, expression: &str) -> Result<Series> {
    let inner = expression.strip_prefix("SEARCH('{").context("not a search")?;
    let (schema, rest) = inner.split_once("} ").context("no list of dimensions")?;
    let (terms, _) = rest.split_once('\'').context("no end")?;
    let mut schema = schema.split(',').map(str::to_owned);
    let namespace = schema.next().context("no namespace")?;
    let terms = terms.split_whitespace().map(|term| {
        let (name, value) = term.split_once('=').context("a term without a property")?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let (metric, values): (Vec<_>, Vec<_>) =
        terms.collect::<Result<Vec<_>>>()?.into_iter().partition(|(name, _)| name == "MetricName");
    let dimensions: BTreeSet<String> = schema.collect();
    let unknown = values.iter().find(|(name, _)| !dimensions.contains(name));
    ensure!(unknown.is_none(), "no such dimension: {unknown:?}");
    let [(_, metric)] = metric.as_slice() else { anyhow::bail!("not one name of a metric") };
    let metric = metric.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let metric = metric.context("the name of a metric is a whole one, in quotes")?;
    Ok(Series {
        by: by.to_owned(),
        source: Source::Search,
        namespace,
        metric: metric.to_owned(),
        dimensions,
        values,
    })
}

//! All metrics as text for Prometheus: OpenMetrics, written by prometheus-client, or the older Prometheus format.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text},
    registry::Registry,
};

use super::{
    Metrics,
    families::{Family, Value, families},
    gauges::Gauges,
    process,
};

/// The format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpositionFormat {
    /// [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) 1.0, which current scrapers ask for.
    OpenMetrics,
    /// The Prometheus text format, for everything else.
    Prometheus,
}

/// Which labels are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelDetail {
    /// All.
    All,
    /// Those without names of tools, servers, agents and models; series that differ only by these are added up.
    Public,
}

impl ExpositionFormat {
    /// The format that a scraper asks for with its `Accept` header.
    pub fn from_accept(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The media type of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Metrics {
    /// All metrics as text.
    pub fn exposition(&self, gauges: &Gauges, format: ExpositionFormat, detail: LabelDetail) -> String {
        let mut families = families(self, gauges, &process::usage());
        if detail == LabelDetail::Public {
            families.iter_mut().for_each(Family::hide_private_labels);
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(FamilyList(families)));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &registry);
        match format {
            ExpositionFormat::OpenMetrics => text,
            ExpositionFormat::Prometheus => prometheus_text(&text),
        }
    }
}

#[derive(Debug)]
struct FamilyList(Vec<Family>);

impl Collector for FamilyList {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let mut metric =
                encoder.encode_descriptor(family.name, family.help, family.unit.as_ref(), family.kind)?;
            for (labels, value) in &family.series {
                match (value, labels.as_slice()) {
                    (Value::Info, labels) => metric.encode_info(&labels)?,
                    (value, []) => encode_value(&mut metric, family, value)?,
                    (value, labels) => encode_value(&mut metric.encode_family(&labels)?, family, value)?,
                }
            }
        }
        Ok(())
    }
}

fn encode_value(encoder: &mut MetricEncoder<'_>, family: &Family, value: &Value) -> fmt::Result {
    use prometheus_client::metrics::MetricType::Counter;
    let is_counter = matches!(family.kind, Counter);
    match value {
        Value::Integer(count) if is_counter => encoder.encode_counter::<NoLabelSet, _, u64>(count, None),
        Value::Number(count) if is_counter => encoder.encode_counter::<NoLabelSet, _, f64>(count, None),
        Value::Integer(value) => encoder.encode_gauge(value),
        Value::Number(value) => encoder.encode_gauge(value),
        Value::Histogram(counts) => {
            let bounds = counts.bounds.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(counts.buckets).collect();
            let count = counts.buckets.iter().sum();
            encoder.encode_histogram::<NoLabelSet>(counts.sum, count, &buckets, None)
        }
        Value::Info => Ok(()),
    }
}

/// OpenMetrics in the Prometheus text format, in which the names of counters and infos have their suffix in the description,
/// too, and which has neither units nor an end mark.
fn prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(description) = line.strip_prefix("# HELP ") {
            help = description.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|description| description.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take() {
                text.extend(["# HELP ", name, suffix, " ", help, "\n"]);
            }
            text.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
        } else if !line.starts_with('#') {
            text.extend([line, "\n"]);
        }
    }
    text
}

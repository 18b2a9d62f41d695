//! What the overview shows: the calls of the last hour, percentiles, tokens and cost, by source and by tool.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use super::{
    Metrics, NO_SOURCE, SUCCESS,
    activity_window::{ActivitySum, WINDOW_MINUTES},
};

/// Tools in [`Activity::top_tools`].
const MAX_TOP_TOOLS: usize = 10;

/// The activity of this process since its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// How long the process has been counting.
    pub uptime: Duration,
    /// Tool calls of each minute of the last hour, oldest first; the last one is the current minute.
    pub calls_per_minute: [u64; WINDOW_MINUTES],
    /// Those that failed.
    pub failures_per_minute: [u64; WINDOW_MINUTES],
    /// The median duration of the calls of the last five minutes; `None` without calls.
    pub p50: Option<Duration>,
    /// The 95th percentile of the same.
    pub p95: Option<Duration>,
    /// All tool calls.
    pub calls_total: u64,
    /// Those that failed.
    pub failures_total: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// The cost of model calls in the operator's currency; `None` if no price was known.
    pub cost: Option<f64>,
    /// By source, in the order of their names.
    pub sources: Vec<SourceActivity>,
    /// The tools that were called most, the most frequent first.
    pub top_tools: Vec<ToolActivity>,
}

/// The calls of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceActivity {
    /// The source.
    pub source: String,
    /// Calls in the current minute or in the one before, whichever had more: the current one is not over yet.
    pub calls_last_minute: u64,
    /// Those that failed.
    pub failures_last_minute: u64,
    /// Calls of the last hour.
    pub calls_last_hour: u64,
    /// Those that failed.
    pub failures_last_hour: u64,
    /// The median duration of the calls of the last five minutes; `None` without calls.
    pub p50: Option<Duration>,
    /// The 95th percentile of the same.
    pub p95: Option<Duration>,
}

/// The calls of one tool of one source since the start of the process.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolActivity {
    /// The tool.
    pub tool: String,
    /// Its source.
    pub source: String,
    /// All its calls.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Their mean duration.
    pub mean: Duration,
}

impl Metrics {
    /// The activity since the start of the process.
    pub fn activity(&self) -> Activity {
        let (uptime, now) = (self.started.elapsed(), self.minute());
        let mut total = ActivitySum::default();
        let mut sources = Vec::new();
        for series in self.sources.all() {
            let mut sum = ActivitySum::default();
            {
                let window = series.value.window.lock();
                sum.add(&window, now);
                total.add(&window, now);
            }
            let [source] = &series.labels;
            if **source != *NO_SOURCE {
                sources.push(source_activity(source, &sum));
            }
        }
        sources.sort_by(|one, other| one.source.cmp(&other.source));
        let tools = self.tool_activity();
        let (calls_total, failures_total) = tools
            .iter()
            .fold((0, 0), |(calls, failures), tool| (calls + tool.calls, failures + tool.failures));
        let (input_tokens, output_tokens, cost) = self.model_totals();
        Activity {
            uptime,
            calls_per_minute: total.calls,
            failures_per_minute: total.failures,
            p50: total.percentile(0.5),
            p95: total.percentile(0.95),
            calls_total,
            failures_total,
            input_tokens,
            output_tokens,
            cost,
            sources,
            top_tools: top_tools(tools),
        }
    }

    fn tool_activity(&self) -> Vec<ToolActivity> {
        let mut tools: HashMap<(String, String), (u64, u64, u64)> = HashMap::new();
        for series in self.tool_calls.all() {
            let [tool, source, outcome] = &series.labels;
            let (calls, nanos) = series.value.load();
            let entry = tools.entry((tool.to_string(), source.to_string())).or_default();
            entry.0 += calls;
            entry.1 += if **outcome == *SUCCESS { 0 } else { calls };
            entry.2 = entry.2.saturating_add(nanos);
        }
        let activity = |((tool, source), (calls, failures, nanos)): ((String, String), (u64, u64, u64))| {
            let mean = Duration::from_nanos(nanos.checked_div(calls).unwrap_or_default());
            ToolActivity { tool, source, calls, failures, mean }
        };
        tools.into_iter().map(activity).collect()
    }

    /// Tokens that models read and wrote, and what they cost.
    fn model_totals(&self) -> (u64, u64, Option<f64>) {
        let (mut input, mut output, mut cost) = (0, 0, None);
        for series in self.model_usage.all() {
            let usage = series.value.load();
            input += usage.input;
            output += usage.output;
            if let Some(more) = usage.cost {
                *cost.get_or_insert(0.0) += more;
            }
        }
        (input, output, cost)
    }
}

fn source_activity(source: &str, sum: &ActivitySum) -> SourceActivity {
    SourceActivity {
        source: source.to_owned(),
        calls_last_minute: last_minute(&sum.calls),
        failures_last_minute: last_minute(&sum.failures),
        calls_last_hour: sum.calls.iter().sum(),
        failures_last_hour: sum.failures.iter().sum(),
        p50: sum.percentile(0.5),
        p95: sum.percentile(0.95),
    }
}

/// The larger of the current minute, which is incomplete, and the one before.
fn last_minute(minutes: &[u64; WINDOW_MINUTES]) -> u64 {
    minutes.iter().rev().take(2).copied().max().unwrap_or_default()
}

fn top_tools(mut tools: Vec<ToolActivity>) -> Vec<ToolActivity> {
    tools.retain(|tool| tool.source != NO_SOURCE);
    tools.sort_by(|one, other| {
        let key = |tool: &ToolActivity| Reverse(tool.calls);
        key(one).cmp(&key(other)).then_with(|| (&one.tool, &one.source).cmp(&(&other.tool, &other.source)))
    });
    tools.truncate(MAX_TOP_TOOLS);
    tools
}

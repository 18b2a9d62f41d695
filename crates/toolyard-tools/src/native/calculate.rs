//! `calculate`: exact arithmetic with units, bounded in time, depth and size.

mod values;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use fend_core::Interrupt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value, json};
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, RawJson, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput,
    ToolSpec,
};

use self::values::{Counted, counted};
use crate::arguments::{read_arguments, schema_of};

/// Longer expressions are not calculations.
const MAX_CHARACTERS: usize = 4_096;
/// A calculation that needs longer is a bomb.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// How long an interrupted calculation may take to notice.
const GRACE: Duration = Duration::from_millis(250);
/// The parser recurses once per bracket, so its stack must hold [`MAX_CHARACTERS`] levels. Only touched pages cost memory.
const STACK_BYTES: usize = 256 << 20;
/// Evaluation stops when it has used this much, and leaves the rest for taking everything down again.
const STACK_LIMIT: usize = STACK_BYTES / 2;

/// The arguments of `calculate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The expression, such as `(3+4)*12/7`, `5 km to miles` or `sum(values)`
    expression: String,
    /// The numbers that `values` in the expression stands for; what is no number is left out
    #[serde(default)]
    #[schemars(extend("type" = ["array", "number"]))]
    values: Option<Value>,
}

/// Calculates with exact fractions, units and functions. Random numbers and exchange rates are not offered.
#[derive(Debug)]
pub struct Calculate {
    spec: ToolSpec,
}

impl Calculate {
    /// The tool.
    pub fn new() -> Self {
        let description = "Calculate an arithmetic expression exactly, or over `values`: sum(values), average(values), \
                           min(values), max(values), median(values), count(values). Knows units, powers, roots, \
                           logarithms and trigonometry. Results that are not exact begin with `approx.`";
        let spec = ToolSpec::new("calculate", description)
            .with_input_schema(schema_of::<Arguments>())
            .with_hints(ToolHints { idempotent: Some(true), open_world: Some(false), ..ToolHints::READ_ONLY })
            .with_capability("calculate");
        let mut spec = spec;
        spec.output_schema = Some(RawJson::from_value(&json!({
            "type": "object",
            "properties": {
                "result": {"type": ["number", "string"], "description": "A number where it is one and no digit is lost"},
                "exact": {"type": "boolean"},
                "counted": {"type": "integer"},
                "ignored": {"type": "integer"},
            },
            "required": ["result", "exact"],
        })));
        Self { spec }
    }
}

impl Default for Calculate {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for Calculate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Arguments { expression, values } = read_arguments(&request.arguments)?;
            let values = values.filter(|values| !values.is_null());
            let counted = counted(&expression, values.as_ref())?;
            let expression = counted.as_ref().map_or(expression, |counted| counted.expression.clone());
            if expression.trim().is_empty() {
                return Err(ToolError::failed("there is nothing to calculate"));
            }
            if expression.chars().count() > MAX_CHARACTERS {
                return Err(ToolError::failed(format!(
                    "the expression is longer than {MAX_CHARACTERS} characters"
                )));
            }
            let until = context.deadline.min(Instant::now() + TIME_LIMIT);
            evaluate(expression, until).await.map(|result| answer(&result, counted.as_ref()))
        })
    }
}

/// Exact results are just the number; inexact ones keep the word that says so. As JSON a number is a number, so that it
/// can be put to use as one.
fn answer(result: &str, counted: Option<&Counted>) -> ToolOutput {
    let (exact, shown) = match result.strip_prefix("approx.") {
        Some(rest) => (false, rest.trim()),
        None => (true, result),
    };
    let mut facts = json!({"result": number(shown).unwrap_or_else(|| json!(result)), "exact": exact});
    let mut text = result.to_owned();
    if let (Some(Counted { counted, ignored, .. }), Value::Object(facts)) = (counted, &mut facts) {
        facts.insert("counted".to_owned(), json!(counted));
        facts.insert("ignored".to_owned(), json!(ignored));
        if *ignored > 0 {
            let all = counted + ignored;
            text = format!("{result}\n({ignored} of {all} values are not numbers and were left out)");
        }
    }
    let mut output = ToolOutput::text(text);
    output.structured = Some(RawJson::from_value(&facts));
    output
}

/// A number that JSON carries without losing a digit of it.
fn number(shown: &str) -> Option<Value> {
    let number: Number = serde_json::from_str(shown).ok()?;
    let same = number.to_string() == shown || number.as_f64().is_some_and(|float| float.to_string() == shown);
    same.then_some(Value::Number(number))
}

/// Evaluates off the runtime's threads; dropping the future ends the evaluation.
async fn evaluate(expression: String, until: Instant) -> Result<String, ToolError> {
    let stop = Arc::new(AtomicBool::new(false));
    let _stops_when_dropped = StopGuard(Arc::clone(&stop));
    tokio::task::spawn_blocking(move || evaluate_on_own_stack(expression, until, stop))
        .await
        .unwrap_or_else(|error| Err(ToolError::new(ErrorKind::Internal, error.to_string())))
}

/// Evaluates on a thread whose stack is of known size: on any other, a recursive expression ends the process.
fn evaluate_on_own_stack(
    expression: String,
    until: Instant,
    stop: Arc<AtomicBool>,
) -> Result<String, ToolError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("calculate".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let limits = Limits { stop, until, stack_top: stack_address() };
            let result =
                fend_core::evaluate_with_interrupt(&expression, &mut fend_core::Context::new(), &limits);
            // Nobody may be waiting any more.
            let _ = sender.send(match result {
                Ok(result) if result.get_main_result().is_empty() => {
                    Err(ToolError::failed("the expression has no result"))
                }
                Ok(result) => Ok(result.get_main_result().to_owned()),
                Err(message) => Err(limits.explain(message)),
            });
        })
        .map_err(|error| ToolError::new(ErrorKind::Internal, format!("failed to start a thread: {error}")))?;
    // Parsing cannot be interrupted; the thread then ends a little later than the call.
    let patience = until.saturating_duration_since(Instant::now()) + GRACE;
    receiver.recv_timeout(patience).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => given_up("takes too long"),
            RecvTimeoutError::Disconnected => {
                ToolError::failed("the calculator broke down over this expression")
            }
        })
    })
}

/// When a calculation must end.
struct Limits {
    stop: Arc<AtomicBool>,
    until: Instant,
    stack_top: usize,
}

impl Limits {
    fn too_deep(&self) -> bool {
        self.stack_top.abs_diff(stack_address()) > STACK_LIMIT
    }

    fn explain(&self, message: String) -> ToolError {
        if message != "interrupted" {
            return ToolError::failed(message);
        }
        let reason = if Instant::now() >= self.until { "takes too long" } else { "recurses too deeply" };
        given_up(reason)
    }
}

fn given_up(reason: &str) -> ToolError {
    ToolError::failed(format!("the calculation {reason}"))
        .with_hint("use a shorter expression or smaller numbers")
}

impl Interrupt for Limits {
    fn should_interrupt(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.until || self.too_deep()
    }
}

/// Roughly where on its stack this thread is.
#[inline(never)]
fn stack_address() -> usize {
    let marker = 0_u8;
    (&raw const marker).addr()
}

/// Stops the calculation when the call is dropped.
struct StopGuard(Arc<AtomicBool>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "calculate_tests.rs"]
mod tests;

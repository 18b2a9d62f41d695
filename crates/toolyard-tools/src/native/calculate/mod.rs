//! `calculate`: exact arithmetic with units, bounded in time, depth and size.

mod aggregate;
mod notation;

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

use self::{
    aggregate::{ExpandedExpression, expand_aggregates},
    notation::check_notation,
};
use crate::arguments::{read_arguments, schema_of};

const MAX_EXPRESSION_CHARS: usize = 4_096;
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an interrupted evaluation may take to stop.
const INTERRUPT_GRACE: Duration = Duration::from_millis(250);
/// The parser recurses once per bracket, so its stack must hold [`MAX_EXPRESSION_CHARS`] levels. Only the pages in use cost
/// memory.
const STACK_BYTES: usize = 256 << 20;
/// Evaluation stops at this depth; the rest of the stack is for unwinding and dropping.
const MAX_STACK_DEPTH_BYTES: usize = STACK_BYTES / 2;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CalculateArguments {
    /// The expression, such as `(3+4)*12/7`, `5 km to miles` or `sum(values)`
    expression: String,
    /// The numbers that `values` in the expression stands for; what is no number is left out
    #[serde(default)]
    #[schemars(extend("type" = ["array", "number"]))]
    values: Option<Value>,
}

/// The tool `calculate`: exact fractions, units and functions, without random numbers and exchange rates.
#[derive(Debug)]
pub struct Calculate {
    spec: ToolSpec,
}

impl Calculate {
    /// Creates the tool.
    pub fn new() -> Self {
        let description = "Calculate an arithmetic expression exactly, or over `values`: sum(values), average(values), \
                           min(values), max(values), median(values), count(values). Knows units, powers, roots, \
                           logarithms and trigonometry. Results that are not exact begin with `approx.`";
        let spec = ToolSpec::new("calculate", description)
            .with_input_schema(schema_of::<CalculateArguments>())
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
            let CalculateArguments { expression, values } = read_arguments(&request.arguments)?;
            // Models fill in every parameter: where no list is wanted, an empty one says no more than none.
            let is_unused = !expression.contains("values") && values == Some(Value::Array(Vec::new()));
            let values = values.filter(|values| !values.is_null() && !is_unused);
            let expanded = expand_aggregates(&expression, values.as_ref())?;
            let expression = expanded.as_ref().map_or(expression, |expanded| expanded.expression.clone());
            if expression.trim().is_empty() {
                return Err(ToolError::failed("the expression is empty"));
            }
            if expression.chars().count() > MAX_EXPRESSION_CHARS {
                return Err(ToolError::failed(format!(
                    "the expression is longer than {MAX_EXPRESSION_CHARS} characters"
                )));
            }
            check_notation(&expression)?;
            let deadline = context.deadline.min(Instant::now() + EVALUATION_TIMEOUT);
            evaluate(expression, deadline).await.map(|result| output(&result, expanded.as_ref()))
        })
    }
}

/// The text of an inexact result keeps the prefix `approx.`; the structured result is a number where possible.
fn output(result: &str, expanded: Option<&ExpandedExpression>) -> ToolOutput {
    let (exact, digits) = match result.strip_prefix("approx.") {
        Some(rest) => (false, rest.trim()),
        None => (true, result),
    };
    let mut structured =
        json!({"result": lossless_number(digits).unwrap_or_else(|| json!(result)), "exact": exact});
    let mut text = result.to_owned();
    if let (Some(ExpandedExpression { counted, ignored, .. }), Value::Object(fields)) =
        (expanded, &mut structured)
    {
        fields.insert("counted".to_owned(), json!(counted));
        fields.insert("ignored".to_owned(), json!(ignored));
        if *ignored > 0 {
            let all = counted + ignored;
            text = format!("{result}\n({ignored} of {all} values are not numbers and were left out)");
        }
    }
    let mut output = ToolOutput::text(text);
    output.structured = Some(RawJson::from_value(&structured));
    output
}

/// The JSON number with exactly these digits, if there is one.
fn lossless_number(digits: &str) -> Option<Value> {
    let number: Number = serde_json::from_str(digits).ok()?;
    let is_lossless =
        number.to_string() == digits || number.as_f64().is_some_and(|float| float.to_string() == digits);
    is_lossless.then_some(Value::Number(number))
}

/// Evaluates on another thread; dropping the future stops the evaluation.
async fn evaluate(expression: String, deadline: Instant) -> Result<String, ToolError> {
    let stop = Arc::new(AtomicBool::new(false));
    let _stop_on_drop = StopGuard(Arc::clone(&stop));
    tokio::task::spawn_blocking(move || evaluate_on_own_stack(expression, deadline, stop))
        .await
        .unwrap_or_else(|error| Err(ToolError::new(ErrorKind::Internal, error.to_string())))
}

/// Evaluates on a thread with a stack of known size, because a stack overflow would end the process.
fn evaluate_on_own_stack(
    expression: String,
    deadline: Instant,
    stop: Arc<AtomicBool>,
) -> Result<String, ToolError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("calculate".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let limits = Limits { stop, deadline, stack_top: stack_address() };
            let result =
                fend_core::evaluate_with_interrupt(&expression, &mut fend_core::Context::new(), &limits);
            // The call may have timed out.
            let _ = sender.send(match result {
                Ok(result) if result.get_main_result().is_empty() => {
                    Err(ToolError::failed("the expression has no result"))
                }
                Ok(result) => Ok(result.get_main_result().to_owned()),
                Err(message) => Err(limits.to_tool_error(message)),
            });
        })
        .map_err(|error| ToolError::new(ErrorKind::Internal, format!("failed to start a thread: {error}")))?;
    // Parsing cannot be interrupted; the thread may outlive the call.
    let timeout = deadline.saturating_duration_since(Instant::now()) + INTERRUPT_GRACE;
    receiver.recv_timeout(timeout).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => limit_exceeded("takes too long"),
            RecvTimeoutError::Disconnected => ToolError::failed("the calculator crashed on this expression"),
        })
    })
}

/// When an evaluation must stop.
struct Limits {
    /// Set when the call is dropped.
    stop: Arc<AtomicBool>,
    deadline: Instant,
    /// The stack address at which the evaluation started.
    stack_top: usize,
}

impl Limits {
    fn is_too_deep(&self) -> bool {
        self.stack_top.abs_diff(stack_address()) > MAX_STACK_DEPTH_BYTES
    }

    /// Tells why the evaluation was interrupted, or reports its own error.
    fn to_tool_error(&self, message: String) -> ToolError {
        if message != "interrupted" {
            return ToolError::failed(message);
        }
        let reason = if Instant::now() >= self.deadline { "takes too long" } else { "recurses too deeply" };
        limit_exceeded(reason)
    }
}

fn limit_exceeded(reason: &str) -> ToolError {
    ToolError::failed(format!("the calculation {reason}"))
        .with_hint("use a shorter expression or smaller numbers")
}

impl Interrupt for Limits {
    fn should_interrupt(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.deadline || self.is_too_deep()
    }
}

/// The approximate position on this thread's stack.
#[inline(never)]
fn stack_address() -> usize {
    let marker = 0_u8;
    (&raw const marker).addr()
}

/// Stops the evaluation when the call is dropped.
struct StopGuard(Arc<AtomicBool>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "calculate_tests.rs"]
mod tests;

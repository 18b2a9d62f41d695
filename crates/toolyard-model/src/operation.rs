//! [`ModelCallOperation`]: reports model calls to telemetry, with their tokens and cost.

use std::{borrow::Cow, sync::Arc};

use toolyard_core::telemetry::{OperationKind, RunningOperation, SpanContext, Telemetry, TokenUsage};

use crate::{FinishReason, Model, ModelError, ModelEvent, ModelReply, ModelRequest, collect_reply};

/// The operation of a model call. It is recorded as cancelled if it is dropped.
#[derive(Debug)]
#[must_use = "an operation that is dropped is recorded as cancelled"]
pub struct ModelCallOperation(RunningOperation);

impl ModelCallOperation {
    /// Starts the operation of a call that `parent` caused.
    pub fn start(
        telemetry: &Arc<dyn Telemetry>,
        parent: Option<SpanContext>,
        model: &dyn Model,
        request: &ModelRequest,
    ) -> Self {
        let kind = OperationKind::ModelCall {
            provider: model.provider().into(),
            model: model.provider_model().into(),
            max_tokens: request.max_tokens,
            finish_reason: None,
            usage: TokenUsage::default(),
            cost: None,
        };
        Self(RunningOperation::start(telemetry, parent, kind))
    }

    /// Records the call. A call that failed may have cost something, too.
    pub fn end(mut self, model: &dyn Model, reply: &Result<ModelReply, ModelError>) {
        let used = reply.as_ref().map_or_else(ModelError::usage, |reply| reply.usage);
        if let Some(OperationKind::ModelCall { usage, cost, finish_reason, .. }) = self.0.kind_mut() {
            *usage = TokenUsage { input: used.input, output: used.output };
            let cost_micros = match used.cost_micros {
                0 => model.cost(&used),
                reported => Some(reported),
            };
            // Exact up to 2^53 millionths.
            #[expect(clippy::cast_precision_loss, reason = "costs are far below the limit")]
            let in_units = cost_micros.map(|micros| micros as f64 / 1e6);
            *cost = in_units;
            *finish_reason = reply.as_ref().ok().map(|reply| finish_reason_name(&reply.finish_reason));
        }
        self.0.end(reply.as_ref().err().map(|error| Cow::Borrowed(error.kind.as_str())));
    }
}

/// Like [`collect_reply`], and reports the call to `telemetry` as caused by `parent`.
pub async fn collect_observed_reply(
    model: &dyn Model,
    request: &ModelRequest,
    telemetry: Option<&Arc<dyn Telemetry>>,
    parent: Option<SpanContext>,
    on_event: impl FnMut(&ModelEvent),
) -> Result<ModelReply, ModelError> {
    let operation = telemetry.map(|telemetry| ModelCallOperation::start(telemetry, parent, model, request));
    let reply = collect_reply(model, request, on_event).await;
    if let Some(operation) = operation {
        operation.end(model, &reply);
    }
    reply
}

/// The names that OpenAI uses, and OpenTelemetry after it.
fn finish_reason_name(reason: &FinishReason) -> Cow<'static, str> {
    match reason {
        FinishReason::Stop => "stop".into(),
        FinishReason::ToolCalls => "tool_calls".into(),
        FinishReason::Length => "length".into(),
        FinishReason::Refused => "content_filter".into(),
        FinishReason::Other(_) => "other".into(),
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::telemetry::{Operation, RecordingTelemetry};

    use super::*;
    use crate::{ModelErrorKind, ModelStream, ScriptedModel, ToolCalling, Usage};

    /// A model with a price, which may be zero.
    #[derive(Debug)]
    struct PricedModel(ScriptedModel, u64);

    impl Model for PricedModel {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn provider(&self) -> &'static str {
            "anthropic"
        }

        fn tool_calling(&self) -> ToolCalling {
            ToolCalling::Text
        }

        fn cost(&self, usage: &Usage) -> Option<u64> {
            Some(usage.output * self.1)
        }

        fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
            self.0.generate(request)
        }
    }

    async fn recorded(model: &dyn Model) -> Operation {
        let recorder = Arc::new(RecordingTelemetry::default());
        let telemetry: Arc<dyn Telemetry> = Arc::clone(&recorder) as _;
        let request = ModelRequest { max_tokens: Some(7), ..ModelRequest::default() };
        let _: Result<ModelReply, ModelError> =
            collect_observed_reply(model, &request, Some(&telemetry), None, |_| {}).await;
        recorder.take().remove(0)
    }

    fn failing() -> ScriptedModel {
        ScriptedModel::new(ToolCalling::Text, |_| {
            let usage = Usage { input: 100, output: 20, ..Usage::default() };
            Err(ModelError::new("scripted", ModelErrorKind::InvalidResponse, "broke off").with_usage(usage))
        })
    }

    #[tokio::test]
    async fn a_failed_call_has_the_tokens_and_the_cost_that_it_used() {
        let operation = recorded(&PricedModel(failing(), 500_000)).await;
        let OperationKind::ModelCall { provider, max_tokens, finish_reason, usage, cost, .. } =
            operation.kind
        else {
            panic!("{operation:?}")
        };
        assert_eq!((&*provider, max_tokens, finish_reason), ("anthropic", Some(7), None));
        assert_eq!((usage, cost), (TokenUsage { input: 100, output: 20 }, Some(10.0)));
        assert!(operation.error_type.is_some());
    }

    #[tokio::test]
    async fn a_price_of_zero_is_a_known_cost() {
        let scripted = || ScriptedModel::with_replies(ToolCalling::Text, ["Hello"]);
        let costs = [recorded(&PricedModel(scripted(), 0)).await, recorded(&scripted()).await];
        let costs = costs.map(|operation| match operation.kind {
            OperationKind::ModelCall { cost, finish_reason, .. } => (cost, finish_reason),
            other => panic!("{other:?}"),
        });
        assert_eq!(costs, [(Some(0.0), Some("stop".into())), (None, Some("stop".into()))]);
    }
}

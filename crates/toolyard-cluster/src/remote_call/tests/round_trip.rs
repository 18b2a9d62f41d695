//! Everything that crosses comes back as it was.

use proptest::{option, prelude::*, sample::select};
use serde_json::Value;
use toolyard_core::{
    ArgumentProblem, ContentBlock, OutputMeta, RawToolError, ResultRef, SignInLink, SourceSignal,
    ToolErrorParts, Truncation,
};

use super::{
    super::wire::{
        error::WireError,
        input::{WireAnswer, WireInputRequest},
        message::{CallerMessage, ExecutorMessage, OutgoingMessage, WireInput, WireLog, WireProgress},
    },
    *,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,8}", ".{0,8}", "\\PC{0,20}"]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}|type|text", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// JSON in spellings that a parser would change.
fn raw_json() -> impl Strategy<Value = RawJson> {
    let spellings = ["null", "1.50", r#"{"b":1,"a":2,"b":3}"#, r#"" é \ud83d\ude00""#, "[ 1e400 , -0 ]"];
    prop_oneof![
        select(spellings.to_vec()).prop_map(|text| RawJson::parse(text.to_owned()).unwrap()),
        json_value().prop_map(RawJson::from),
    ]
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let pair = || (text(), text());
    prop_oneof![
        text().prop_map(ContentBlock::text),
        pair().prop_map(|(data, mime_type)| ContentBlock::Image { data, mime_type }),
        pair().prop_map(|(data, mime_type)| ContentBlock::Audio { data, mime_type }),
        pair().prop_map(|(uri, name)| ContentBlock::ResourceLink { uri, name }),
        json_value().prop_map(|resource| ContentBlock::Resource { resource }),
        json_value().prop_map(ContentBlock::Other),
        // Resembles a block of a known type.
        text().prop_map(|text| ContentBlock::Other(json!({"type": "text", "text": text, "more": 1}))),
    ]
}

fn source() -> impl Strategy<Value = SourceId> {
    text().prop_map(SourceId::from)
}

prop_compose! {
    fn truncation()(kept: u32, omitted: u32, total: u32, reference in option::of(text())) -> Truncation {
        let [kept, omitted, total] = [kept, omitted, total].map(|count| count as usize);
        Truncation { kept, omitted, total, reference: reference.map(ResultRef::new) }
    }
}

prop_compose! {
    fn meta()(
        source in option::of(source()),
        synthesized: bool,
        source_count: u32,
        sources in prop::collection::vec(source(), 0..3),
        failed in prop::collection::vec(text(), 0..3),
        truncation in option::of(truncation()),
        structured_truncated: bool,
        attempts: u32,
    ) -> OutputMeta {
        OutputMeta {
            source, synthesized, source_count: source_count as usize, sources, failed, truncation,
            structured_truncated, attempts,
        }
    }
}

prop_compose! {
    fn output()(
        content in prop::collection::vec(block(), 0..4),
        structured in option::of(raw_json()),
        budget_exempt: bool,
        input_required: bool,
        raw in option::of(raw_json()),
        meta in meta(),
    ) -> ToolOutput {
        ToolOutput { content, structured, budget_exempt, input_required, raw, meta }
    }
}

fn kind() -> impl Strategy<Value = ErrorKind> {
    use ErrorKind as K;
    select(vec![
        K::UnknownTool,
        K::UnknownSource,
        K::UnknownCapability,
        K::InvalidArguments,
        K::Refused,
        K::Quarantined,
        K::Unavailable,
        K::AuditUnavailable,
        K::QuotaExceeded,
        K::SignInRequired,
        K::CircuitOpen,
        K::Failed,
        K::Timeout,
        K::ResponseLost,
        K::OutcomeUnknown,
        K::Internal,
    ])
}

fn raw_error() -> impl Strategy<Value = RawToolError> {
    prop_oneof![raw_json().prop_map(RawToolError::ToolResult), raw_json().prop_map(RawToolError::Protocol),]
}

prop_compose! {
    fn error()(
        (kind, message) in (kind(), text()),
        (tool, source) in (option::of(text()), option::of(source())),
        (hint, caller_hint) in (option::of(text()), option::of(text())),
        problems in prop::collection::vec((text(), text()), 0..3),
        retryable: Option<bool>,
        signal in option::of(select(vec![SourceSignal::Healthy, SourceSignal::Faulty, SourceSignal::Unknown])),
        retry_after in option::of((0..1_000_000_u64, 0..1_000_000_000_u32)),
        attempts: u32,
        raw in option::of(raw_error()),
        sign_in in option::of((text(), text(), text())),
    ) -> ToolError {
        let problems = problems.into_iter().map(|(path, message)| ArgumentProblem { path, message });
        ToolErrorParts {
            kind,
            message,
            tool,
            source,
            hint,
            caller_hint,
            problems: problems.collect(),
            retryable,
            source_signal: signal,
            retry_after: retry_after.map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds)),
            attempts,
            raw,
            sign_in: sign_in.map(|(source, id, url)| SignInLink::new(&source, &id, url)),
        }
        .into()
    }
}

prop_compose! {
    fn input_request()(
        key in text(),
        source in source(),
        kind in select(vec![CallInputKind::Elicitation, CallInputKind::Sampling, CallInputKind::Roots]),
        params in option::of(raw_json()),
    ) -> CallInputRequest {
        CallInputRequest { key, source, kind, params }
    }
}

fn input_answer() -> impl Strategy<Value = Result<Vec<RawJson>, CallInputError>> {
    prop_oneof![
        prop::collection::vec(raw_json(), 0..3).prop_map(Ok),
        text().prop_map(|message| Err(CallInputError::Unsupported(message))),
        text().prop_map(|message| Err(CallInputError::InvalidRequest(message))),
        text().prop_map(|message| Err(CallInputError::Failed(message))),
        (any::<i64>(), text()).prop_map(|(code, message)| Err(CallInputError::Rejected { code, message })),
    ]
}

fn cross(message: &OutgoingMessage<'_>) -> ExecutorMessage {
    ExecutorMessage::decode(&message.encode().unwrap()).unwrap()
}

proptest! {
    #[test]
    fn outputs_cross_unchanged(output in output()) {
        let ExecutorMessage::Outcome(outcome) = cross(&OutgoingMessage::Success((&output).into())) else {
            panic!("another message")
        };
        prop_assert_eq!(*outcome, Ok(output));
    }

    /// The mark of [`ToolError::mark_never_sent`] does not cross: no other process can set it.
    #[test]
    fn errors_cross_unchanged(error in error()) {
        let wire = Box::new(WireError::from(error.clone().mark_never_sent()));
        let ExecutorMessage::Outcome(outcome) = cross(&OutgoingMessage::Failure(wire)) else {
            panic!("another message")
        };
        prop_assert_eq!(*outcome, Err(error));
    }

    #[test]
    fn progress_and_logs_cross_unchanged(
        (progress, total, message) in (any::<i32>(), any::<Option<i32>>(), option::of(text())),
        is_activity: bool,
        params in raw_json(),
    ) {
        let sent = CallProgress { progress: progress.into(), total: total.map(f64::from), message };
        let wire = WireProgress::new(&sent, is_activity).unwrap();
        let ExecutorMessage::Progress { progress, is_activity: received } = cross(&OutgoingMessage::Progress(wire))
        else {
            panic!("another message")
        };
        prop_assert_eq!((progress, received), (sent, is_activity));
        let log = WireLog { params: params.clone() };
        let ExecutorMessage::Log(received) = cross(&OutgoingMessage::Log(log)) else { panic!("another message") };
        prop_assert_eq!(received, params);
    }

    #[test]
    fn input_requests_and_answers_cross_unchanged(
        number: u64,
        requests in prop::collection::vec(input_request(), 0..3),
        answer in input_answer(),
    ) {
        let wire = WireInput { number, requests: requests.iter().map(WireInputRequest::from).collect() };
        let ExecutorMessage::Input(received) = cross(&OutgoingMessage::Input(wire)) else {
            panic!("another message")
        };
        prop_assert_eq!(received.number, number);
        let received: Vec<_> = received.requests.into_iter().map(CallInputRequest::from).collect();
        prop_assert_eq!(received, requests);

        let message = CallerMessage::Answer(WireAnswer::new(number, answer.clone())).encode().unwrap();
        let CallerMessage::Answer(received) = CallerMessage::decode(&message).unwrap() else {
            panic!("another message")
        };
        prop_assert_eq!(received.number, number);
        prop_assert_eq!(received.into_result(), answer);
    }
}

#[test]
fn resources_cross_at_any_depth_that_can_be_read() {
    let text = format!("{}1{}", "[".repeat(127), "]".repeat(127));
    let resource: Value = serde_json::from_str(&text).unwrap();
    let output = ToolOutput { content: vec![ContentBlock::Resource { resource }], ..ToolOutput::default() };
    let ExecutorMessage::Outcome(outcome) = cross(&OutgoingMessage::Success((&output).into())) else {
        panic!("another message")
    };
    assert_eq!(*outcome, Ok(output));
}

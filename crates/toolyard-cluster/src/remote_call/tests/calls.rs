//! Calls that work: outputs, errors, progress, logs, input, deadlines.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use toolyard_core::{
    CallInputResponses, CallerIdentity, DataOwner, ExtendableDeadline, PresentedToken, telemetry::SpanContext,
};

use super::{super::encode_request, *};

#[tokio::test]
async fn a_call_returns_the_output_of_the_tool() {
    let cluster = TestCluster::new(|request, _| async move {
        assert_eq!(request, super::request());
        let mut output = ToolOutput::text("hello");
        output.raw = Some(RawJson::parse(r#"{"content": [ ], "x":1.0}"#.to_owned()).unwrap());
        Ok(output)
    });
    let output = cluster.call(&within(seconds(5))).await.unwrap();
    assert_eq!(output.to_text(), "hello");
    assert_eq!(output.raw.unwrap().get(), r#"{"content": [ ], "x":1.0}"#, "byte for byte");
}

#[tokio::test]
async fn a_call_returns_the_error_of_the_tool() {
    let error = || ToolError::failed("no such file").with_hint("list first").with_attempts(2);
    let cluster = TestCluster::new(move |_, _| async move { Err(error()) });
    assert_eq!(cluster.call(&within(seconds(5))).await, Err(error()));
}

#[tokio::test]
async fn a_changed_definition_is_not_called() {
    let cluster = TestCluster::new(|_, _| async { Ok(ToolOutput::text("called")) });
    for (definition, kind) in [("definition", None), ("changed", Some(ErrorKind::UnknownTool))] {
        let target = CallTarget { definition: Some(ContentHash::of(definition)), ..target() };
        let outcome = call_remote(&*cluster.caller, EXECUTOR, &target, &request(), &within(seconds(5))).await;
        assert_eq!(outcome.err().map(|error| error.kind()), kind);
    }
}

/// Has everything that a caller can have.
#[derive(Debug)]
struct FullCaller {
    identity: Arc<CallerIdentity>,
    responses: CallInputResponses,
    trace_context: Vec<(String, String)>,
    request_meta: RawJson,
}

impl Caller for FullCaller {
    fn capabilities(&self) -> RawJson {
        RawJson::parse(r#"{"elicitation": {}}"#.to_owned()).unwrap()
    }
    fn session_id(&self) -> u64 {
        u64::MAX
    }
    fn client_id(&self) -> u64 {
        u64::MAX - 1
    }
    fn program_id(&self) -> u64 {
        3
    }
    fn identity(&self) -> Option<&Arc<CallerIdentity>> {
        Some(&self.identity)
    }
    fn owner_hash(&self) -> [u8; 32] {
        [9; 32]
    }
    fn log_level(&self) -> Option<&str> {
        Some("debug")
    }
    fn trace_context(&self) -> &[(String, String)] {
        &self.trace_context
    }
    fn request_meta(&self) -> Option<&RawJson> {
        Some(&self.request_meta)
    }
    fn accepts_input_required(&self) -> bool {
        true
    }
    fn input_responses(&self) -> Option<&CallInputResponses> {
        Some(&self.responses)
    }
}

#[tokio::test]
async fn the_context_crosses_without_the_token_of_the_caller() {
    let token = PresentedToken::new("s3cret-token", 100);
    let identity = Arc::new(CallerIdentity::principal("https://issuer", "ada").with_presented_token(token));
    let span = SpanContext::root();
    let caller = Arc::new(FullCaller {
        identity: Arc::clone(&identity),
        responses: CallInputResponses { responses: json!({"q": 1}).into(), state: Some("s".to_owned()) },
        trace_context: vec![
            ("traceparent".to_owned(), SpanContext::root().to_string()),
            ("baggage".to_owned(), "a=b".to_owned()),
        ],
        request_meta: RawJson::parse(r#"{"com.example/tenant": 1.50}"#.to_owned()).unwrap(),
    });
    let mut context = within(seconds(5)).with_caller(Some(Arc::clone(&caller) as Arc<dyn Caller>));
    context.attempt = 3;
    context.idempotency_key = Some("key".into());
    context.owner = DataOwner::of(Some(&identity));
    context.identity = Some(identity);
    context.span = Some(span);
    let message = encode_request(&target(), &request(), &context).unwrap();
    assert!(!String::from_utf8(message).unwrap().contains("s3cret"));

    let expected = (context.clone(), Arc::clone(&caller));
    let cluster = TestCluster::new(move |_, context| {
        let (sent, sent_caller) = expected.clone();
        async move {
            assert_eq!((context.attempt, &context.idempotency_key), (3, &sent.idempotency_key));
            assert_eq!((context.owner, context.span), (sent.owner, sent.span));
            assert_eq!(context.identity, sent.identity);
            assert!(context.identity.as_ref().unwrap().presented_token().is_none());
            assert!(context.extendable_deadline.is_none());
            let caller = context.caller.as_deref().unwrap();
            assert_eq!(caller.capabilities().get(), r#"{"elicitation": {}}"#);
            assert_eq!(
                (caller.session_id(), caller.client_id(), caller.program_id()),
                (u64::MAX, u64::MAX - 1, 3)
            );
            assert_eq!(caller.identity(), Some(&sent_caller.identity));
            assert!(caller.identity().unwrap().presented_token().is_none());
            assert_eq!(caller.owner_hash(), [9; 32]);
            assert!(!caller.wants_progress() && caller.accepts_input_required());
            assert_eq!(caller.log_level(), Some("debug"));
            assert_eq!(caller.trace_context(), sent_caller.trace_context());
            assert_eq!(caller.request_meta(), Some(&sent_caller.request_meta));
            assert_eq!(caller.span(), sent_caller.span());
            assert_eq!(caller.input_responses(), Some(&sent_caller.responses));
            assert!(caller.conversation().is_none());
            Ok(ToolOutput::text("seen"))
        }
    });
    assert_eq!(cluster.call(&context).await.unwrap().to_text(), "seen");
}

#[tokio::test]
async fn progress_and_logs_arrive_in_order_and_before_the_outcome() {
    let cluster = TestCluster::new(|_, context| async move {
        let caller = context.caller.unwrap();
        for step in 0..3 {
            let progress = CallProgress { progress: f64::from(step), ..CallProgress::default() };
            caller.progress(&progress);
            caller.log(&json!({"step": step}).into());
            tokio::task::yield_now().await;
        }
        // Not a number of JSON: dropped, and the call goes on.
        caller.progress(&CallProgress { progress: f64::NAN, ..CallProgress::default() });
        caller.note_unsupported(&question("folder"));
        // A task of the tool that goes on after it.
        tokio::spawn(async move {
            for _ in 0..100 {
                tokio::task::yield_now().await;
                caller.log(&json!("late").into());
            }
        });
        Ok(ToolOutput::text("done"))
    });
    let caller = Arc::new(TestCaller::default());
    let context = within(seconds(5)).with_caller(Some(Arc::clone(&caller) as Arc<dyn Caller>));
    cluster.call(&context).await.unwrap();
    let expected = [
        "progress 0",
        r#"log {"step":0}"#,
        "progress 1",
        r#"log {"step":1}"#,
        "progress 2",
        r#"log {"step":2}"#,
        "unsupported folder",
    ];
    assert_eq!(caller.told(), expected);
}

#[tokio::test]
async fn a_flood_of_progress_loses_progress_but_neither_logs_nor_the_outcome() {
    let cluster = TestCluster::new(|_, context| async move {
        let caller = context.caller.unwrap();
        for step in 0..10_000 {
            caller.progress(&CallProgress { progress: f64::from(step), ..CallProgress::default() });
            if step % 1_000 == 0 {
                caller.log(&step.to_string().parse::<serde_json::Value>().unwrap().into());
            }
        }
        Ok(ToolOutput::text("done"))
    });
    let caller = Arc::new(TestCaller::default());
    let context = within(seconds(5)).with_caller(Some(Arc::clone(&caller) as Arc<dyn Caller>));
    assert_eq!(cluster.call(&context).await.unwrap().to_text(), "done");
    let told = caller.told();
    assert!(told.len() <= 256, "{}", told.len());
    assert_eq!(told.last().map(String::as_str), Some("progress 9999"));
    assert_eq!(told.iter().filter(|line| line.starts_with("log")).count(), 10);
}

/// Asks twice at the same time, and once more when the answers are there.
async fn ask(context: CallContext) -> Outcome {
    let caller = context.caller.unwrap();
    let (one, other) = ([question("one")], [question("other")]);
    let (one, other) = tokio::join!(caller.request_input(&one), caller.request_input(&other));
    Ok(ToolOutput::text(format!("{one:?} {other:?}")))
}

#[tokio::test(start_paused = true)]
async fn the_caller_answers_input_requests() {
    let cluster = TestCluster::new(|_, context| ask(context));
    cluster.cluster.set_delay(Duration::from_millis(3));
    let caller = Arc::new(TestCaller { answer_delay: seconds(1), ..TestCaller::default() });
    let context = within(seconds(5)).with_caller(Some(Arc::clone(&caller) as Arc<dyn Caller>));
    let answers = cluster.call(&context).await.unwrap().to_text();
    let answer = r#"Ok([{"action":"accept"}])"#;
    assert_eq!(answers, format!("{answer} {answer}"));
    assert_eq!(caller.told(), ["one", "other"].map(|key| format!("input {:?}", question(key))));
}

#[tokio::test]
async fn input_is_requested_however_much_the_tool_logs() {
    let cluster = TestCluster::new(|_, context| async move {
        let caller = context.caller.unwrap();
        let (large, small) = (RawJson::from(json!("x".repeat(100_000))), RawJson::empty_object());
        for _ in 0..500 {
            caller.log(&large);
            caller.log(&small);
        }
        let answer = caller.request_input(&[question("one")]).await;
        Ok(ToolOutput::text(format!("{}", answer.is_ok())))
    });
    let caller = Arc::new(TestCaller::default());
    let context = within(seconds(5)).with_caller(Some(Arc::clone(&caller) as Arc<dyn Caller>));
    assert_eq!(cluster.call(&context).await.unwrap().to_text(), "true");
    let logged: usize = caller.told().iter().map(String::len).sum();
    assert!(logged < 1_100_000, "{logged} bytes were queued");
}

#[tokio::test]
async fn failed_input_reaches_the_tool_with_its_reason() {
    let rejected = CallInputError::Rejected { code: -32_000, message: "not now".to_owned() };
    for error in [
        rejected,
        CallInputError::unsupported(),
        CallInputError::InvalidRequest("a".to_owned()),
        CallInputError::Failed("b".to_owned()),
    ] {
        let cluster = TestCluster::new(|_, context| ask(context));
        let caller = TestCaller { answer: Err(error.clone()), ..TestCaller::default() };
        let context = within(seconds(5)).with_caller(Some(Arc::new(caller)));
        let answers = cluster.call(&context).await.unwrap().to_text();
        let answer = format!("{:?}", Err::<Vec<RawJson>, _>(error));
        assert_eq!(answers, format!("{answer} {answer}"));
    }
}

#[tokio::test]
async fn too_few_responses_are_no_answer() {
    let cluster = TestCluster::new(|_, context| async move {
        let caller = context.caller.unwrap();
        let answer = caller.request_input(&[question("one"), question("other")]).await;
        Ok(ToolOutput::text(format!("{answer:?}")))
    });
    let context = within(seconds(5)).with_caller(Some(Arc::new(TestCaller::default())));
    let answer = cluster.call(&context).await.unwrap().to_text();
    assert_eq!(answer, r#"Err(Failed("1 responses to 2 input requests"))"#);
}

#[tokio::test(start_paused = true)]
async fn a_tool_withdraws_its_input_request() {
    let cluster = TestCluster::new(|_, context| async move {
        let caller = context.caller.unwrap();
        let answer = tokio::time::timeout(seconds(1), caller.request_input(&[question("one")])).await;
        assert!(answer.is_err());
        tokio::time::sleep(seconds(1)).await;
        Ok(ToolOutput::text("went on"))
    });
    let caller = Arc::new(TestCaller { answer_delay: seconds(100), ..TestCaller::default() });
    let context = within(seconds(5)).with_caller(Some(Arc::clone(&caller) as Arc<dyn Caller>));
    assert_eq!(cluster.call(&context).await.unwrap().to_text(), "went on");
    assert_eq!(caller.told().last().map(String::as_str), Some("input withdrawn"));
}

#[tokio::test]
async fn a_task_that_outlives_its_call_gets_no_input() {
    let (sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let cluster = TestCluster::new(move |_, context| {
        let (caller, sender) = (context.caller.unwrap(), sender.clone());
        tokio::spawn(async move {
            let asked_before = caller.request_input(&[question("one")]).await;
            let asked_later = caller.request_input(&[question("two")]).await;
            sender.send((asked_before, asked_later)).unwrap();
        });
        async move {
            tokio::task::yield_now().await;
            Ok(ToolOutput::text("done"))
        }
    });
    let caller = TestCaller { answer_delay: seconds(100), ..TestCaller::default() };
    cluster.call(&within(seconds(5)).with_caller(Some(Arc::new(caller)))).await.unwrap();
    let (asked_before, asked_later) = answers.recv().await.unwrap();
    assert!(matches!(asked_before, Err(CallInputError::Failed(_))), "{asked_before:?}");
    assert!(matches!(asked_later, Err(CallInputError::Failed(_))), "{asked_later:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_caller_has_none_at_the_executor() {
    let cluster = TestCluster::new(|_, context| async move {
        assert!(context.caller.is_none() && context.extendable_deadline.is_none());
        tokio::time::sleep(seconds(10)).await;
        Ok(ToolOutput::default())
    });
    let start = Instant::now();
    let error = cluster.call(&within(seconds(3))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let elapsed = start.elapsed();
    assert!(elapsed < seconds(3) && elapsed > Duration::from_millis(2_900), "{elapsed:?}");
}

/// The context of a caller whose activity extends a deadline.
fn extendable(caller: TestCaller, idle: u64, max: u64) -> (CallContext, Arc<ExtendableDeadline>) {
    let now = Instant::now().into_std();
    let deadline = Arc::new(ExtendableDeadline::new(now, seconds(idle), seconds(max)));
    let mut context = within(seconds(idle)).with_caller(Some(Arc::new(caller)));
    context.extendable_deadline = Some(Arc::clone(&deadline));
    (context, deadline)
}

#[tokio::test(start_paused = true)]
async fn activity_extends_the_deadline_on_both_sides() {
    let cluster = TestCluster::new(|_, context| async move {
        let deadline = context.extendable_deadline.unwrap();
        // The last activity comes right before the deadline.
        for pause in [500, 500, 1_950, 1_950, 10] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            deadline.record_activity(Instant::now().into_std());
        }
        Ok(ToolOutput::text("done"))
    });
    cluster.cluster.set_delay(Duration::from_millis(2));
    let (context, deadline) = extendable(TestCaller::default(), 2, 60);
    let start = Instant::now();
    let call = cluster.call(&context);
    // As the hub waits: until the deadline of the context, which activity extends.
    let mut call = std::pin::pin!(call);
    let output = loop {
        let until = Instant::from_std(deadline.deadline());
        match tokio::time::timeout_at(until, &mut call).await {
            Ok(outcome) => break outcome.unwrap(),
            Err(_) => {
                assert!(deadline.deadline() > until.into_std(), "timed out after {:?}", start.elapsed());
            }
        }
    };
    assert_eq!(output.to_text(), "done");
    assert!(start.elapsed() > seconds(4));
}

#[tokio::test(start_paused = true)]
async fn activity_is_reported_a_few_times_per_idle_timeout() {
    let cluster = TestCluster::new(|_, context| async move {
        let deadline = context.extendable_deadline.unwrap();
        for _ in 0..1_000 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            deadline.record_activity(Instant::now().into_std());
        }
        Ok(ToolOutput::text("done"))
    });
    let (context, _) = extendable(TestCaller::default(), 2, 60);
    let request = encode_request(&target(), &request(), &context).unwrap();
    let mut exchange = cluster.caller.open(EXECUTOR, TOOL_CALL_SERVICE, request).await.unwrap();
    let mut reports = 0;
    while let Some(message) = exchange.receive().await.unwrap() {
        reports += usize::from(message == br#"{"activity":{}}"#);
    }
    assert!((9..=12).contains(&reports), "{reports} reports in 2 seconds");
}

#[tokio::test(start_paused = true)]
async fn without_activity_the_executor_ends_the_call() {
    let cluster = TestCluster::new(|_, context| async move {
        let deadline = context.extendable_deadline.unwrap();
        tokio::time::sleep(seconds(1)).await;
        deadline.record_activity(Instant::now().into_std());
        std::future::pending().await
    });
    let (context, deadline) = extendable(TestCaller::default(), 2, 60);
    let start = Instant::now();
    let error = cluster.call(&context).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let elapsed = start.elapsed();
    assert!(elapsed < seconds(3) && elapsed > Duration::from_millis(2_900), "{elapsed:?}");
    assert!(deadline.deadline() > Instant::now().into_std(), "the caller would have waited longer");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_paused_while_a_person_is_asked() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    let cluster = TestCluster::new(|_, context| async move {
        let (caller, deadline) = (context.caller.unwrap(), context.extendable_deadline.unwrap());
        deadline.pause();
        ASKED.store(true, Ordering::Relaxed);
        let answer = caller.request_input(&[question("one")]).await;
        deadline.resume(Instant::now().into_std());
        Ok(ToolOutput::text(format!("{}", answer.is_ok())))
    });
    let caller = TestCaller { answer_delay: seconds(30), ..TestCaller::default() };
    let (context, deadline) = extendable(caller, 2, 60);
    let (start, max) = (Instant::now(), deadline.max_deadline());
    let paused = async {
        tokio::time::sleep(seconds(10)).await;
        assert!(ASKED.load(Ordering::Relaxed));
        assert_eq!(deadline.deadline(), max, "the deadline of the caller is paused, too");
    };
    let (outcome, ()) = tokio::join!(cluster.call(&context), paused);
    assert_eq!(outcome.unwrap().to_text(), "true");
    let resumed_until = Instant::from_std(deadline.deadline()) - start;
    assert!(resumed_until >= seconds(32) && resumed_until < seconds(33), "{resumed_until:?}");
}

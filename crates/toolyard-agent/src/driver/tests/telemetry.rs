//! What runs report to telemetry.

use serde_json::json;
use toolyard_core::{
    Approvals as _,
    telemetry::{Operation, OperationKind},
};

use super::{Behavior, Fixture, plan, replying, request, tool};
use crate::{ApprovalDecision, RunEnd, decide_approval};

fn runs(operations: &[Operation]) -> Vec<&Operation> {
    operations.iter().filter(|operation| matches!(operation.kind, OperationKind::AgentRun { .. })).collect()
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_continues_its_trace() {
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for traceparent in [None, Some(traceparent)] {
        let steps = plan(&[("w", "write", json!({"x": 1}), &[])]);
        let write = tool("write", Behavior::Echo).writes();
        let (fixture, telemetry) = Fixture::traced(replying([steps, "Done.".to_owned()]), &[write]);
        let mut request = request("?");
        request.traceparent = traceparent.map(Into::into);
        let trace_id = |run| crate::run_trace_id(run, &request);
        let (run, end) = fixture.ask(request.clone()).await;
        assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
        let question = fixture.log.pending_approvals().await.unwrap().remove(0);
        let decision = ApprovalDecision::Allow;
        assert!(decide_approval(&fixture.log, &fixture.log, question.id, decision, "ada").await.unwrap());
        assert!(matches!(fixture.resume(&run).await, RunEnd::Answered { .. }));

        let operations = telemetry.take();
        // A search of tools has no span of its own.
        let mut spans = operations.iter().filter_map(|operation| operation.span);
        assert!(spans.all(|span| span.context.trace_id == trace_id(&run)), "{operations:#?}");
        let [first, resumed] = runs(&operations)[..] else { panic!("{operations:#?}") };
        let (first, resumed) = (first.span.unwrap(), resumed.span.unwrap());
        assert_ne!(first.context.span_id, resumed.context.span_id);
        match traceparent {
            Some(parent) => {
                assert_eq!([first, resumed].map(|span| span.parent.unwrap().to_string()), [parent; 2]);
            }
            None => assert_eq!((first.parent, resumed.parent), (None, Some(first.context))),
        }
    }
}

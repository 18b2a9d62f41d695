//! Failures of an instance that only one caller uses say nothing about the source: its circuit breaker does not count them.

use std::{sync::Arc, time::Duration};

use toolyard_core::{
    BoxFuture, CallContext, CallerIdentity, ErrorKind, RawJson, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};
use toolyard_hub::{CallOptions, HubConfig, ToolHub};

/// Each caller that is told apart has an instance of its own. That of Ada is dead, that of Eve hangs, and all others work.
struct TestTool(ToolSpec);

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            match context.identity.as_ref().map(|identity| &*identity.subject) {
                Some("ada") => Err(ToolError::new(ErrorKind::Unavailable, "dead")),
                Some("eve") => std::future::pending().await,
                _ => Ok(ToolOutput::text("works")),
            }
        })
    }

    fn is_isolated(&self, identity: Option<&CallerIdentity>) -> bool {
        identity.is_some_and(CallerIdentity::is_distinguished)
    }
}

fn as_caller(subject: &str) -> CallOptions {
    // All use the same program, by whose name callers share a source.
    CallOptions::for_caller("program".into())
        .with_timeout(Duration::from_secs(1))
        .on_behalf_of_identity(Some(Arc::new(CallerIdentity::principal("https://idp.example", subject))))
}

#[tokio::test(start_paused = true)]
async fn dead_instances_of_some_callers_do_not_stop_the_others() {
    let hub = ToolHub::new(HubConfig::default());
    let source = SourceInfo::new("browser", SourceKind::Mcp);
    let spec = ToolSpec::new("open_page", "Opens a page");
    hub.register(source, vec![Arc::new(TestTool(spec)) as _]);
    let request = ToolCallRequest::new("open_page", RawJson::empty_object());
    for _ in 0..10 {
        let dead = hub.execute(&request, &as_caller("ada")).await.unwrap_err();
        assert_eq!(dead.kind(), ErrorKind::Unavailable, "the circuit of the source is open");
        let hangs = hub.execute(&request, &as_caller("eve")).await.unwrap_err();
        assert_ne!(hangs.kind(), ErrorKind::CircuitOpen);
    }
    hub.execute(&request, &as_caller("bob")).await.unwrap();
    hub.execute(&request, &CallOptions::for_caller("program".into())).await.unwrap();
}

//! Every change of a breaker's state is logged once.

use std::{
    fmt::{Debug, Write as _},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use toolyard_core::ErrorKind;
use toolyard_hub::{CallOptions, ToolHub};
use tracing::{
    Event, Metadata, Subscriber,
    field::Field,
    span::{Attributes, Id, Record},
};

use crate::common::{Behavior, register, request, test_tool};

/// Records the level and fields of every event that has a state.
#[derive(Clone, Default)]
struct StateLog(Arc<Mutex<Vec<String>>>);

impl Subscriber for StateLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            if field.name() != "message" {
                let _ = write!(line, " {}={value:?}", field.name());
            }
        });
        if line.contains(" state=") {
            self.0.lock().push(line);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn every_change_of_state_is_logged_once() {
    let log = StateLog::default();
    // Of this thread only: under `cargo test`, other tests run in the same process.
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let hub = ToolHub::default();
    let failures = vec![
        ErrorKind::ResponseLost,
        ErrorKind::ResponseLost,
        ErrorKind::ResponseLost,
        ErrorKind::ResponseLost,
        ErrorKind::ResponseLost,
    ];
    let outcomes = failures.into_iter().chain([ErrorKind::ResponseLost, ErrorKind::Failed]).collect();
    let search = test_tool("search_web", "native")
        .writes()
        .with_delay_ms(0)
        .with_behavior(Behavior::FailInTurn(outcomes));
    register(
        &hub,
        &[
            search,
            test_tool("fetch", "server")
                .writes()
                .with_delay_ms(0)
                .with_behavior(Behavior::Fail(ErrorKind::ResponseLost)),
        ],
    );
    let call = async |tool: &str| {
        let _ = hub.execute(&request(tool), &CallOptions::default()).await;
    };
    for pause in [0, 0, 0, 0, 0, 1, 2, 4, 0] {
        tokio::time::advance(Duration::from_secs(pause)).await;
        call("search_web").await;
    }
    for _ in 0..6 {
        call("fetch").await;
    }
    let tool_fields = r#"source="native" tool="search_web""#;
    let expected = [
        format!(r#"WARN {tool_fields} state="open" seconds=2.0"#),
        format!(r#"INFO {tool_fields} state="half_open""#),
        format!(r#"WARN {tool_fields} state="open" seconds=4.0"#),
        format!(r#"INFO {tool_fields} state="half_open""#),
        format!(r#"INFO {tool_fields} state="closed""#),
        r#"WARN source="server" state="open" seconds=2.0"#.to_owned(),
    ];
    assert_eq!(*log.0.lock(), expected);
}

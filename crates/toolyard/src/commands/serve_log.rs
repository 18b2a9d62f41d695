//! A line for every change in the life of a server, in plain words, while we serve.

use std::{collections::BTreeMap, time::Duration};

use toolyard::Toolyard;
use toolyard_core::redact;
use toolyard_mcp::client::{Server, ServerState};

use crate::output::{Output, harmless};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(250);

/// Tells of changes until it is dropped.
pub(super) async fn watch(yard: &Toolyard, output: &Output) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    loop {
        for server in yard.servers().iter().flat_map(|manager| manager.servers()) {
            let (id, now) = (server.config().id.to_string(), words(&server));
            let before = known.insert(id.clone(), now.clone());
            let quiet =
                before.is_none() && matches!(server.state(), ServerState::Known | ServerState::Disabled);
            if before.as_deref() != Some(&now) && !quiet {
                let time = jiff::Timestamp::now().strftime("%H:%M:%SZ");
                output.talk(&harmless(&redact(&format!("{time} {id}: {now}"))));
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn words(server: &Server) -> String {
    let tools = match server.shelf().in_service.len() {
        1 => "1 tool".to_owned(),
        number => format!("{number} tools"),
    };
    match server.state() {
        ServerState::Disabled => "disabled".to_owned(),
        ServerState::Configured => "never seen, looked for again soon".to_owned(),
        ServerState::Known => format!("not running, {tools} known"),
        ServerState::Starting { .. } => "starting".to_owned(),
        ServerState::Ready { .. } => format!("ready, {tools}"),
        ServerState::Degraded { reason, .. } => format!("ready, {tools}, but {reason}"),
        ServerState::Down { reason, .. } => format!("down: {reason}"),
        _ => "in another state".to_owned(),
    }
}

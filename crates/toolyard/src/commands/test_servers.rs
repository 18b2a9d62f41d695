//! `toolyard servers test`: starts servers, a few at a time, and says of each how it went as soon as that is known.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use toolyard_mcp::client::{ConnectError, McpManager, Server, Session};

use crate::{
    commands::{
        server_memory::{ServerMemory, Trouble},
        servers::{facts, hint_to_approve, tell_trouble},
    },
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
    progress::waiting,
};

/// How many servers are started at the same time.
const AT_ONCE: usize = 4;

/// How one server did.
struct Tested {
    server: Arc<Server>,
    outcome: Result<Arc<Session>, ConnectError>,
    took: Duration,
}

/// Starts servers and stops them again; a failure of one does not keep the others from being tried.
pub(crate) async fn test(
    manager: &McpManager,
    servers: &[Arc<Server>],
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let tell = |tested: &Tested| {
        if !output.wants_json() {
            tell_tested(tested, output);
        }
    };
    let tests = servers.iter().map(|server| async move {
        let started = Instant::now();
        let outcome = manager.connect(server.config().id.as_str()).await;
        let tested = Tested { server: Arc::clone(server), outcome, took: started.elapsed() };
        tell(&tested);
        server.stop().await;
        tested
    });
    let names: Vec<&str> = servers.iter().map(|server| server.config().id.as_str()).collect();
    let all = stream::iter(tests).buffer_unordered(AT_ONCE).collect::<Vec<_>>();
    let mut all = waiting(&names.join(", "), all).await?;
    all.sort_by(|one, other| one.server.config().id.cmp(&other.server.config().id));
    let mut memory = ServerMemory::read(workplace);
    for Tested { server, outcome, took } in &all {
        let error = outcome.as_ref().err();
        memory.note(server.config(), error.map(|error| Trouble::new(&error.to_string(), *took)));
    }
    memory.keep(workplace);
    if output.wants_json() {
        output.json(&all.iter().map(as_data).collect::<Vec<_>>());
    }
    let failed: Vec<&str> = (all.iter().filter(|tested| tested.outcome.is_err()))
        .map(|tested| tested.server.config().id.as_str())
        .collect();
    let Some(first) = failed.first() else { return Ok(()) };
    let failure = Failure::new(Code::Unreachable, format!("{} could not be used", failed.join(", ")))
        .with_hint(format!("see what it said: toolyard servers logs {first}"));
    Err(if output.wants_json() { failure.silent() } else { failure })
}

fn as_data(Tested { server, outcome, took }: &Tested) -> Value {
    json!({
        "server": facts(server, None),
        "milliseconds": took.as_millis(),
        "protocol": outcome.as_ref().ok().map(|session| session.version()),
        "calls_itself": outcome.as_ref().ok().map(|session| session.about().name.clone()),
        "error": outcome.as_ref().err().map(|error| toolyard_core::redact(&error.to_string()).into_owned()),
    })
}

fn tell_tested(Tested { server, outcome, took }: &Tested, output: &Output) {
    let (config, shelf, seconds) = (server.config(), server.shelf(), took.as_secs_f64());
    match outcome {
        Ok(session) => {
            let tools = match shelf.in_service.len() {
                1 => "1 tool".to_owned(),
                more => format!("{more} tools"),
            };
            let version = session.version();
            output.line(&harmless(&format!(
                "{}   ready in {seconds:.1} s, protocol {version}, {tools}",
                config.id
            )));
            if !shelf.first_seen.is_empty() {
                let names = shelf.first_seen.join(", ");
                output.talk(&harmless(&format!(
                    "  {}: seen for the first time and in service: {names}",
                    config.id
                )));
            }
            tell_trouble(&shelf, output);
            hint_to_approve(config, &shelf, output);
        }
        Err(error) => {
            let error = error.to_string();
            let error = toolyard_core::redact(&error);
            output.line(&harmless(&format!("{}   failed after {seconds:.1} s: {error}", config.id)));
        }
    }
}

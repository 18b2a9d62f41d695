//! Servers that were never seen are started once, so that their tools are known; those that keep people waiting are not
//! waited for again and again.

use std::{
    cell::RefCell,
    io::IsTerminal as _,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use toolyard::Toolyard;
use toolyard_mcp::client::{ConnectError, Server, ServerState};

use super::server_memory::{ServerMemory, Trouble};
use crate::{
    failure::Failure,
    folders::Workplace,
    output::{Output, harmless},
    progress::waiting,
};

/// How many servers are started at the same time.
const AT_ONCE: usize = 8;

/// How a start went.
struct Started {
    server: Arc<Server>,
    trouble: Option<ConnectError>,
    took: Duration,
}

/// Starts the servers that were never seen; it says so, because it takes time. Whoever does not want to wait goes on without
/// those that are not there yet.
pub(super) async fn discover(yard: &Toolyard, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let Some(manager) = yard.servers() else { return Ok(()) };
    let mut memory = ServerMemory::read(workplace);
    let unseen = manager.servers().into_iter().filter(|server| server.state() == ServerState::Configured);
    let is_left_alone = |server: &Arc<Server>| memory.of(server.config()).is_some_and(Trouble::is_left_alone);
    let (left_alone, wanted): (Vec<_>, Vec<_>) = unseen.partition(is_left_alone);
    let mut left_out: Vec<String> = left_alone.iter().map(|server| server.config().id.to_string()).collect();
    if !wanted.is_empty() {
        let (started, missing) = start(&wanted, manager).await?;
        for started in &started {
            left_out.extend(tell(started, &memory, output));
            note(started, &mut memory);
        }
        if !missing.is_empty() {
            output.talk(&format!("note: not waited for: {}", missing.join(", ")));
        }
        if !started.is_empty() {
            memory.keep(workplace);
        }
    }
    if !left_out.is_empty() {
        left_out.sort();
        output.talk(&harmless(&format!(
            "note: left out, because it could not be used lately: {}; why: toolyard servers list, again: toolyard servers test",
            left_out.join(", ")
        )));
    }
    Ok(())
}

/// Starts servers until all have answered or somebody is tired of waiting; then also the names of those that did not.
async fn start(
    wanted: &[Arc<Server>],
    manager: &toolyard_mcp::client::McpManager,
) -> Result<(Vec<Started>, Vec<String>), Failure> {
    let done: RefCell<Vec<Started>> = RefCell::default();
    let starts = stream::iter(wanted).for_each_concurrent(AT_ONCE, |server| {
        let done = &done;
        async move {
            let began = Instant::now();
            let trouble = manager.connect(server.config().id.as_str()).await.err();
            let server = Arc::clone(server);
            done.borrow_mut().push(Started { server, trouble, took: began.elapsed() });
        }
    });
    let names: Vec<&str> = wanted.iter().map(|server| server.config().id.as_str()).collect();
    match waiting(&names.join(", "), starts).await {
        // A person pressed ctrl-c: what is there is used.
        Err(_stopped) if std::io::stderr().is_terminal() => {}
        waited => waited?,
    }
    let done = done.into_inner();
    let is_missing = |name: &&str| !done.iter().any(|started| started.server.config().id.as_str() == *name);
    let missing = names.into_iter().filter(is_missing).map(str::to_owned).collect();
    Ok((done, missing))
}

/// Says how a start went, unless that is known already: then the name is left for a list.
fn tell(started: &Started, memory: &ServerMemory, output: &Output) -> Option<String> {
    let config = started.server.config();
    let Some(error) = &started.trouble else {
        output.talk(&harmless(&first_sight(&started.server)));
        return None;
    };
    let trouble = Trouble::new(&error.to_string(), started.took);
    if memory.of(config).is_some_and(|known| known.reason == trouble.reason) {
        return Some(config.id.to_string());
    }
    output.talk(&harmless(&format!("note: {} could not be used: {}", config.id, trouble.reason)));
    None
}

/// Remembers how a start went.
pub(super) fn remember(
    server: &Server,
    trouble: Option<&ConnectError>,
    took: Duration,
    memory: &mut ServerMemory,
) {
    memory.note(server.config(), trouble.map(|error| Trouble::new(&error.to_string(), took)));
}

fn note(started: &Started, memory: &mut ServerMemory) {
    remember(&started.server, started.trouble.as_ref(), started.took, memory);
}

fn first_sight(server: &Server) -> String {
    let (id, shelf) = (&server.config().id, server.shelf());
    let names: Vec<&str> = shelf.in_service.iter().map(|tool| &*tool.spec.name).collect();
    let concern =
        shelf.concern().map(|concern| format!("; {concern}: toolyard servers show {id}")).unwrap_or_default();
    let tools = match names.as_slice() {
        [] => "none of its tools are in service".to_owned(),
        [name] => format!("its tool is in service: {name}"),
        names => format!("its {} tools are in service: {}", names.len(), names.join(", ")),
    };
    format!("note: {id} was seen for the first time, {tools}{concern}")
}

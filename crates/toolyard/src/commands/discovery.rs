//! Servers that were never seen are started once, so that their tools are known; those that keep people waiting are not
//! waited for again and again.

use std::{
    cell::RefCell,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use toolyard::Toolyard;
use toolyard_mcp::client::{ConnectError, McpManager, Server, ServerState};

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
    error: Option<ConnectError>,
    took: Duration,
}

impl Started {
    fn trouble(&self) -> Option<Trouble> {
        self.error.as_ref().map(|error| Trouble::new(&error.to_string(), self.took))
    }
}

/// Starts the servers that were never seen; it says so, because it takes time. Whoever ends the waiting ends the command, and
/// does not wait for the same servers the next time.
pub(super) async fn discover(yard: &Toolyard, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let Some(manager) = yard.servers() else { return Ok(()) };
    let mut memory = ServerMemory::read(workplace);
    let unseen = manager.servers().into_iter().filter(|server| server.state() == ServerState::Configured);
    let is_left_alone = |server: &Arc<Server>| memory.of(server.config()).is_some_and(Trouble::is_left_alone);
    let (left_alone, wanted): (Vec<_>, Vec<_>) = unseen.partition(is_left_alone);
    let mut left_out: Vec<String> = left_alone.iter().map(|server| server.config().id.to_string()).collect();
    if !wanted.is_empty() {
        let (started, waited) = start(&wanted, manager).await;
        for started in &started {
            left_out.extend(tell(started, &memory, output));
            memory.note(started.server.config(), started.trouble());
        }
        if let Err((_, took)) = &waited {
            let is_missing =
                |server: &&Arc<Server>| !started.iter().any(|one| Arc::ptr_eq(&one.server, server));
            for server in wanted.iter().filter(is_missing) {
                memory.note(server.config(), Some(Trouble::new("nobody waited for it any longer", *took)));
            }
        }
        memory.keep(workplace);
        waited.map_err(|(stopped, _)| stopped)?;
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

/// Starts servers until all have answered, or until somebody is tired of waiting, after so long.
async fn start(
    wanted: &[Arc<Server>],
    manager: &McpManager,
) -> (Vec<Started>, Result<(), (Failure, Duration)>) {
    let (done, began): (RefCell<Vec<Started>>, _) = (RefCell::default(), Instant::now());
    let starts = stream::iter(wanted).for_each_concurrent(AT_ONCE, |server| {
        let done = &done;
        async move {
            let began = Instant::now();
            let error = manager.connect(server.config().id.as_str()).await.err();
            let server = Arc::clone(server);
            done.borrow_mut().push(Started { server, error, took: began.elapsed() });
        }
    });
    let names: Vec<&str> = wanted.iter().map(|server| server.config().id.as_str()).collect();
    let waited = waiting(&names.join(", "), starts).await;
    (done.into_inner(), waited.map_err(|stopped| (stopped, began.elapsed())))
}

/// Says how a start went, unless that is known already: then the name is left for a list.
fn tell(started: &Started, memory: &ServerMemory, output: &Output) -> Option<String> {
    let config = started.server.config();
    let Some(trouble) = started.trouble() else {
        output.talk(&harmless(&first_sight(&started.server)));
        return None;
    };
    if memory.of(config).is_some_and(|known| known.reason == trouble.reason) {
        return Some(config.id.to_string());
    }
    output.talk(&harmless(&format!("note: {} could not be used: {}", config.id, trouble.reason)));
    None
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

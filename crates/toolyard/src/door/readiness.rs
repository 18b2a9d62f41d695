//! Looks for servers whose tools nobody knows yet, again and again, and says who is missing.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use toolyard_core::{BoxFuture, redact, shown};
use toolyard_mcp::{
    client::{McpManager, Server, ServerState},
    server::Readiness,
};

/// How long until servers are looked for again that were not there.
const AGAIN: Duration = Duration::from_secs(30);

/// Looks for servers that were never seen. Those that are known are not started.
#[derive(Debug)]
pub struct Discovery {
    servers: Arc<McpManager>,
    looked: watch::Sender<bool>,
}

impl Discovery {
    /// Looks for servers of this manager, once it is [run](Self::run).
    pub fn new(servers: Arc<McpManager>) -> Self {
        Self { servers, looked: watch::Sender::new(false) }
    }

    /// Looks for servers until it is dropped.
    pub async fn run(&self) {
        loop {
            // How it went is in their states.
            let _ = self.servers.discover().await;
            self.looked.send_replace(true);
            tokio::time::sleep(AGAIN).await;
        }
    }
}

impl Readiness for Discovery {
    fn settled(&self) -> BoxFuture<'_, ()> {
        let mut looked = self.looked.subscribe();
        Box::pin(async move {
            // An error means that nobody looks any more.
            let _ = looked.wait_for(|looked| *looked).await;
        })
    }

    fn notes(&self) -> Vec<String> {
        self.servers.servers().iter().filter_map(|server| note(server)).collect()
    }
}

/// What a client should know about a server, if anything.
fn note(server: &Server) -> Option<String> {
    let (id, shelf) = (&server.config().id, server.shelf());
    let tools = match shelf.in_service.len() {
        0 => "its tools are not known".to_owned(),
        1 => "its tool stays listed".to_owned(),
        number => format!("its {number} tools stay listed"),
    };
    let text = match server.state() {
        ServerState::Down { reason, .. } => format!("{id} cannot be reached: {reason}; {tools}"),
        ServerState::Configured | ServerState::Starting { .. } if shelf.in_service.is_empty() => {
            format!("{id} has not answered yet; {tools}")
        }
        _ => format!("{id}: {}", shelf.concern()?),
    };
    Some(shown(&redact(&text)).into_owned())
}

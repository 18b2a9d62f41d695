//! A door over HTTP with one real server behind it, and visits of a client that is not ours.

use std::{process::Stdio, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{net::TcpListener, process::Command, sync::oneshot, task::JoinHandle, time::timeout};
use toolyard_core::{ProtocolEra, SourceId, SourceInfo, Tool};
use toolyard_hub::{
    HubConfig, ToolHub,
    surface::{HubService, Profile},
};
use toolyard_mcp::{
    bridge::{AskTheCaller, Upstreams},
    cache::ServerCache,
    client::{McpManager, Registrar},
    server::{
        Access, Door as ServedDoor, HttpConfig, McpServer, Readiness as _, ServeError, ServerConfig,
        SessionKeys, serve_http,
    },
};

use crate::{
    house::{NAME, PATIENCE, manager_of},
    parts::part,
    place::Place,
    row::Row,
};

/// A door with one server behind it.
pub(crate) struct Door {
    address: String,
    manager: Arc<McpManager>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
    place: Place,
}

/// Puts tools of servers into a hub.
struct IntoHub(Arc<ToolHub>);

impl Registrar for IntoHub {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.register(source, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.remove(source);
    }
}

impl Door {
    pub(crate) async fn open(row: Row) -> Self {
        Self::of(row, Profile::default()).await
    }

    /// A door whose calls get this profile's time and no more.
    pub(crate) async fn of(row: Row, profile: Profile) -> Self {
        let place = Place::open(row).await;
        let hub = Arc::new(ToolHub::new(HubConfig::default()));
        let registrar = Arc::new(IntoHub(Arc::clone(&hub)));
        let memory = ServerCache::in_memory();
        let manager = Arc::new(manager_of(place.path(), Arc::new(AskTheCaller), memory, registrar));
        manager.apply(vec![place.config()]).await.unwrap();
        let upstreams = Arc::new(Upstreams::new(Arc::clone(&manager), |_| true));
        upstreams.settled().await;
        assert_eq!(manager.connect(NAME).await.unwrap().era(), row.era);
        let tools = Arc::new(HubService::new(hub, profile));
        let (content, readiness) = (vec![Arc::clone(&upstreams) as _], Some(upstreams as _));
        let config = ServerConfig::new("door", "1", SessionKeys::new([7; 32], None).unwrap());
        let server = Arc::new(McpServer::new(config, ServedDoor { tools, content, readiness }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { drop(stopped.await) };
        let mut http = HttpConfig::new(Access::Open);
        http.drain_time = Duration::from_secs(5);
        http.farewell = Duration::from_millis(50);
        let serving = tokio::spawn(serve_http(server, listener, http, stopped));
        Self { address, manager, stop, serving, place }
    }

    /// What a client of the official Python SDK saw.
    pub(crate) async fn visited(
        &self,
        era: ProtocolEra,
        aspect: &str,
        tool: &str,
        arguments: &Value,
    ) -> Value {
        let era = match era {
            ProtocolEra::Legacy => "legacy",
            ProtocolEra::Modern => "modern",
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/era_matrix/client.py");
        let arguments = arguments.to_string();
        let mut client = Command::new(part("excel-2.2.2/bin/python"));
        client.args([script, era, &self.address, aspect, tool, &arguments]);
        let client = client.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = timeout(PATIENCE * 2, client).await.expect("the client ends in time").unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{era} {aspect} {tool}: {said}\n{errors}"))
    }

    pub(crate) async fn close(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
        self.manager.close().await;
    }
}

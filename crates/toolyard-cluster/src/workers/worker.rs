//! [`Worker`]: the side that serves. Announces itself, lists its tools, and executes calls up to a limit.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{sleep, timeout},
};
use toolyard_core::{
    BoxFuture, ContentHash, ErrorKind, Exchange, PeerError, PeerService, RawJson, SourceId, SourceSignal,
    Tool, ToolError, WorkerEndpoint, WorkerTransport,
};

use super::message::{Announcement, CatalogueMessage, WorkerRefusal};
use crate::remote_call::{LocalTools, ToolCallService};

/// How often a worker announces itself, give or take a quarter.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a call may wait for its turn at a full worker before it is refused: so short that a free worker is found soon, and
/// long enough that a place is taken right after a short call has ended.
const MAX_QUEUE_WAIT: Duration = Duration::from_millis(50);

/// A tool that a worker serves.
pub struct ServedTool {
    /// Its definition, in MCP's form.
    pub definition: RawJson,
    /// Its name and the hash of the definition, as gateways compute it.
    pub endpoint: WorkerEndpoint,
    /// Executes calls.
    pub tool: Arc<dyn Tool>,
}

impl fmt::Debug for ServedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedTool").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// What a worker serves at the moment.
struct Catalogue {
    message: Vec<u8>,
    hash: ContentHash,
    tools: HashMap<WorkerEndpoint, Arc<dyn Tool>>,
}

impl Catalogue {
    fn new(served: Vec<ServedTool>) -> Self {
        let list = served.iter().map(|tool| tool.definition.clone()).collect();
        let message = CatalogueMessage { tools: list }.encode();
        let tools = served.into_iter().map(|served| (served.endpoint, served.tool)).collect();
        Self { hash: ContentHash::of(&message), message, tools }
    }
}

#[derive(Clone)]
struct SharedCatalogue(Arc<RwLock<Arc<Catalogue>>>);

impl SharedCatalogue {
    fn current(&self) -> Arc<Catalogue> {
        Arc::clone(&self.0.read())
    }
}

impl LocalTools for SharedCatalogue {
    fn find(
        &self,
        _source: &SourceId,
        tool: &str,
        definition: Option<&ContentHash>,
    ) -> Result<Arc<dyn Tool>, ToolError> {
        let found = definition.and_then(|definition| {
            let endpoint = WorkerEndpoint { tool: tool.into(), definition: *definition };
            self.current().tools.get(&endpoint).cloned()
        });
        found.ok_or_else(|| {
            ToolError::new(ErrorKind::Unavailable, "the worker does not serve this definition any more")
                .with_source_signal(SourceSignal::Unknown)
                .on_tool(tool)
        })
    }
}

/// A process of a group of workers.
pub struct Worker {
    process: u64,
    /// What people call it.
    name: Option<String>,
    transport: Arc<dyn WorkerTransport>,
    catalogue: SharedCatalogue,
    calls: Arc<dyn PeerService>,
    concurrency: u32,
    places: Semaphore,
    /// Calls that may wait for a place. Further ones are refused at once.
    queue: Semaphore,
    is_leaving: AtomicBool,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Worker {
    /// A process with this random number that executes so many calls at the same time, and has no tools yet. As many calls may
    /// wait for a moment; further ones are refused at once.
    pub fn new(process: u64, transport: Arc<dyn WorkerTransport>, concurrency: u32) -> Self {
        let catalogue = SharedCatalogue(Arc::new(RwLock::new(Arc::new(Catalogue::new(Vec::new())))));
        let places = usize::try_from(concurrency).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            process,
            name: None,
            transport,
            calls: Arc::new(ToolCallService::new(catalogue.clone())),
            catalogue,
            concurrency,
            places: Semaphore::new(places),
            queue: Semaphore::new(places),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// With a name for people, such as that of its machine.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Replaces the tools. Calls that have begun go on. Gateways are told if anything changed.
    ///
    /// # Errors
    /// If the network does not accept the subscriptions.
    pub async fn set_tools(&self, tools: Vec<ServedTool>) -> Result<(), PeerError> {
        let endpoints: Vec<WorkerEndpoint> = tools.iter().map(|tool| tool.endpoint.clone()).collect();
        let next = Arc::new(Catalogue::new(tools));
        let is_changed = next.hash != self.catalogue.current().hash;
        // A call may arrive as soon as the endpoints are there.
        *self.catalogue.0.write() = next;
        self.transport.serve(&endpoints).await?;
        if is_changed {
            self.announce().await;
        }
        Ok(())
    }

    /// Tells gateways that this process is there.
    pub async fn announce(&self) {
        let announcement = Announcement {
            process: self.process,
            catalogue: self.catalogue.current().hash,
            is_leaving: self.is_leaving.load(Ordering::SeqCst),
            name: self.name.clone(),
            concurrency: Some(self.concurrency),
            running_calls: u32::try_from(self.running_calls()).ok(),
        };
        self.transport.announce(announcement.encode()).await;
    }

    /// Announces this process at intervals, for ever.
    pub async fn keep_announcing(&self) {
        loop {
            sleep(ANNOUNCE_INTERVAL.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
            self.announce().await;
        }
    }

    /// The number of calls that are being executed.
    pub fn running_calls(&self) -> usize {
        usize::try_from(self.concurrency)
            .unwrap_or(usize::MAX)
            .saturating_sub(self.places.available_permits())
    }

    /// Takes no more calls, tells gateways, and waits for the calls that have begun, at most for this long. Returns how many
    /// still run.
    pub async fn drain(&self, limit: Duration) -> usize {
        self.is_leaving.store(true, Ordering::SeqCst);
        self.announce().await;
        let finished = timeout(limit, self.places.acquire_many(self.concurrency)).await.is_ok();
        if finished { 0 } else { self.running_calls() }
    }

    /// A place for a call, for which it waits a little; none if the worker is full.
    async fn place(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(place) = self.places.try_acquire() {
            return Some(place);
        }
        let _waiting = self.queue.try_acquire().ok()?;
        timeout(MAX_QUEUE_WAIT, self.places.acquire()).await.ok()?.ok()
    }

    /// Executes calls; register it with the transport.
    pub fn call_service(self: &Arc<Self>) -> Arc<dyn PeerService> {
        Arc::new(WorkerCalls(Arc::clone(self)))
    }

    /// Lists the tools, and announces this process when gateways ask for that; register it with the transport.
    pub fn catalogue_service(self: &Arc<Self>) -> Arc<dyn PeerService> {
        Arc::new(WorkerCatalogue(Arc::clone(self)))
    }
}

struct WorkerCalls(Arc<Worker>);

impl PeerService for WorkerCalls {
    fn serve(self: Arc<Self>, request: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let worker = &self.0;
            let refusal = match worker.place().await {
                _ if worker.is_leaving.load(Ordering::SeqCst) => WorkerRefusal::Leaving,
                Some(_place) => return Arc::clone(&worker.calls).serve(request, exchange).await,
                None => WorkerRefusal::Busy,
            };
            // A caller that is gone needs no answer.
            let _ = exchange.send_last(refusal.encode()).await;
        })
    }
}

struct WorkerCatalogue(Arc<Worker>);

impl PeerService for WorkerCatalogue {
    fn serve(self: Arc<Self>, _request: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let message = self.0.catalogue.current().message.clone();
            // A gateway that is gone asks again.
            let _ = exchange.send_last(message).await;
        })
    }

    fn notified(&self, _message: &[u8]) {
        let worker = Arc::clone(&self.0);
        tokio::spawn(async move { worker.announce().await });
    }
}

//! [`Services`]: what a process does for others, and how requests get to it.

use std::{collections::HashMap, sync::Arc};

use async_nats::Message;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinSet};
use toolyard_core::{Exchange as _, PeerService};

use crate::{
    exchange::{
        frame::{Frame, FrameKind},
        table::ExchangeTable,
    },
    subjects::last_part,
};

/// Exchanges that are served at once; more are refused, and their callers try again.
const MAX_SERVED_EXCHANGES: usize = 16 << 10;

/// Services by name.
#[derive(Default)]
pub(crate) struct Services(Mutex<HashMap<String, Arc<dyn PeerService>>>);

impl Services {
    pub(crate) fn register(&self, name: &str, service: Arc<dyn PeerService>) {
        self.0.lock().insert(name.to_owned(), service);
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn PeerService>> {
        self.0.lock().get(name).cloned()
    }
}

/// Serves exchanges, each in a task of its own. Dropping it ends them.
pub(crate) struct ExchangeServer {
    table: Arc<ExchangeTable>,
    places: Arc<Semaphore>,
    served: JoinSet<()>,
}

impl ExchangeServer {
    pub(crate) fn new(table: Arc<ExchangeTable>) -> Self {
        Self { table, places: Arc::new(Semaphore::new(MAX_SERVED_EXCHANGES)), served: JoinSet::new() }
    }

    /// Begins to serve a request; refuses it without a service.
    pub(crate) fn accept(&mut self, message: Message, service: Option<Arc<dyn PeerService>>) {
        while self.served.try_join_next().is_some() {}
        let place = Arc::clone(&self.places).try_acquire_owned();
        let table = Arc::clone(&self.table);
        self.served.spawn(async move {
            let Ok(_place) = place else { return refuse(&table, &message, "the process is busy").await };
            match service {
                Some(service) => serve(&table, &message, service).await,
                None => refuse(&table, &message, "the process has no such service").await,
            }
        });
    }

    /// Waits for the exchanges that are being served.
    pub(crate) async fn finish(mut self) {
        while self.served.join_next().await.is_some() {}
    }
}

/// Serves requests whose subjects end with the name of a service, until there are no more.
pub(crate) async fn serve_requests(
    mut requests: async_nats::Subscriber,
    table: Arc<ExchangeTable>,
    services: Arc<Services>,
) {
    let mut server = ExchangeServer::new(table);
    while let Some(message) = requests.next().await {
        let service = services.find(last_part(&message.subject));
        server.accept(message, service);
    }
}

async fn refuse(table: &Arc<ExchangeTable>, request: &Message, reason: &str) {
    if let Some(exchange) = table.accept(request) {
        exchange.refuse(reason).await;
    }
}

async fn serve(table: &Arc<ExchangeTable>, message: &Message, service: Arc<dyn PeerService>) {
    let Some(mut exchange) = table.accept(message) else { return };
    let frame = Frame::decode(&message.payload);
    let request = match frame {
        Some(Frame { kind: FrameKind::Open, payload, .. }) => payload.to_vec(),
        Some(Frame { kind: FrameKind::OpenLong, .. }) => {
            if exchange.greet().await.is_err() {
                return;
            }
            match exchange.receive().await {
                Ok(Some(request)) => request,
                Ok(None) => return,
                // Nothing was done, and the other side is still there if only an object is missing.
                Err(error) => return exchange.refuse(&format!("the request did not arrive: {error}")).await,
            }
        }
        _ => return exchange.refuse("the request is malformed").await,
    };
    service.serve(request, Box::new(exchange)).await;
}

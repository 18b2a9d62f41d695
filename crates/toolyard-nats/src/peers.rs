//! [`NatsPeers`]: the processes of a cluster, reached over NATS.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use async_nats::{Message, Subject};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use toolyard_core::{BoxFuture, Exchange, PeerError, PeerService, Peers};

use crate::{
    connection::{NatsConnectError, NatsConnection},
    exchange::{
        frame::{Frame, FrameKind},
        table::ExchangeTable,
    },
    members::Members,
    subjects::{Subjects, last_part},
    sync::lock,
};

/// Exchanges that are served at once; more are refused, and their callers try again.
const MAX_SERVED_EXCHANGES: usize = 16 << 10;

/// The processes of a cluster.
pub struct NatsPeers {
    connection: NatsConnection,
    number: u64,
    table: Arc<ExchangeTable>,
    services: Arc<Services>,
    members: Arc<Members>,
    /// Ends with this value.
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Services(Mutex<HashMap<String, Arc<dyn PeerService>>>);

impl Services {
    fn find(&self, name: &str) -> Option<Arc<dyn PeerService>> {
        lock(&self.0).get(name).cloned()
    }
}

impl fmt::Debug for NatsPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsPeers").field("number", &self.number).finish_non_exhaustive()
    }
}

impl NatsPeers {
    /// Joins the cluster with this number, which no other process may have: a random one.
    ///
    /// # Errors
    /// If NATS does not accept the subscriptions.
    pub async fn join(connection: NatsConnection, number: u64) -> Result<Self, NatsConnectError> {
        let subjects = Subjects::new(Arc::clone(connection.prefix()), number);
        let (table, outbox) = ExchangeTable::new(connection.clone(), subjects.clone());
        let services = Arc::new(Services::default());
        let client = connection.client();
        let failed = |error: &dyn fmt::Display| NatsConnectError::Unreachable {
            servers: connection.addresses().to_owned(),
            reason: error.to_string(),
        };
        let mut exchanges =
            client.subscribe(subjects.own_exchanges()).await.map_err(|error| failed(&error))?;
        let requests = client.subscribe(subjects.own_requests()).await.map_err(|error| failed(&error))?;
        let mut notices = client.subscribe(subjects.notices()).await.map_err(|error| failed(&error))?;
        let members = Members::join(client, &subjects, number).await.map_err(|error| failed(&error))?;
        // Others reach this process from now on.
        connection.round_trip().await?;
        let mut tasks = JoinSet::new();
        let delivering = Arc::clone(&table);
        tasks.spawn(async move {
            while let Some(message) = exchanges.next().await {
                delivering.deliver(message);
            }
        });
        let notified = Arc::clone(&services);
        let own_notice = format!("{number:016x}");
        tasks.spawn(async move {
            while let Some(message) = notices.next().await {
                let is_own = message.reply.as_deref() == Some(own_notice.as_str());
                if let Some(service) = notified.find(last_part(&message.subject)).filter(|_| !is_own) {
                    service.notified(&message.payload);
                }
            }
        });
        tasks.spawn(serve_requests(requests, Arc::clone(&table), Arc::clone(&services)));
        tasks.spawn(Arc::clone(&table).keep_alive());
        tasks.spawn(send_all(client.clone(), outbox));
        tasks.spawn(Arc::clone(&members).watch(client.clone(), subjects));
        Ok(Self { connection, number, table, services, members, _tasks: tasks })
    }

    /// Sets what this process does for its peers under a name without dots and spaces.
    pub fn register(&self, name: &str, service: Arc<dyn PeerService>) {
        lock(&self.services.0).insert(name.to_owned(), service);
    }

    /// Leaves the cluster. Exchanges go on until this value is dropped.
    pub async fn leave(&self) {
        self.members.leave().await;
    }

    /// The connection.
    pub fn connection(&self) -> &NatsConnection {
        &self.connection
    }
}

impl Peers for NatsPeers {
    fn own_number(&self) -> u64 {
        self.number
    }

    fn members(&self) -> Vec<u64> {
        self.members.numbers()
    }

    fn open<'a>(
        &'a self,
        process: u64,
        service: &'a str,
        request: Vec<u8>,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>> {
        Box::pin(async move {
            let subject = self.table.subjects.request(process, service);
            let exchange = self.table.open(subject, request).await?;
            Ok(Box::new(exchange) as Box<dyn Exchange>)
        })
    }

    fn notify_all(&self, service: &str, message: Vec<u8>) {
        let (client, subject) = (self.connection.client().clone(), self.table.subjects.notice(service));
        let sender = format!("{:016x}", self.number);
        if !self.connection.is_connected() {
            return;
        }
        // A notice may get lost, so nobody waits for its sending.
        tokio::spawn(async move { drop(client.publish_with_reply(subject, sender, message.into()).await) });
    }
}

async fn send_all(client: async_nats::Client, mut outbox: mpsc::UnboundedReceiver<(Subject, Bytes)>) {
    while let Some((subject, frame)) = outbox.recv().await {
        // The other side notices the silence.
        let _ = client.publish(subject, frame).await;
    }
}

async fn serve_requests(
    mut requests: async_nats::Subscriber,
    table: Arc<ExchangeTable>,
    services: Arc<Services>,
) {
    let places = Arc::new(Semaphore::new(MAX_SERVED_EXCHANGES));
    let mut served = JoinSet::new();
    while let Some(message) = requests.next().await {
        while served.try_join_next().is_some() {}
        let service = services.find(last_part(&message.subject));
        let place = Arc::clone(&places).try_acquire_owned();
        let table = Arc::clone(&table);
        served.spawn(async move {
            let Ok(_place) = place else { return refuse(&table, &message, "the process is busy").await };
            match service {
                Some(service) => serve(&table, &message, service).await,
                None => refuse(&table, &message, "the process has no such service").await,
            }
        });
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
                Ok(None) | Err(_) => return,
            }
        }
        _ => return exchange.refuse("the request is malformed").await,
    };
    service.serve(request, Box::new(exchange)).await;
}

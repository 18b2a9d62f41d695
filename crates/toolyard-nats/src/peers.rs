//! [`NatsPeers`]: the processes of a cluster, reached over NATS.

use std::{fmt, sync::Arc};

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use toolyard_core::{
    BoxFuture, Exchange, PeerError, PeerService, Peers, WorkerEndpoint, WorkerNetwork, WorkerObserver,
};

use crate::{
    connection::{NatsConnectError, NatsConnection},
    exchange::table::{ExchangeTable, send_all},
    members::{ClusterMember, Members},
    objects::{Bucket, ObjectRoute, ObjectStore},
    services::{Services, serve_requests},
    subjects::{Subjects, WorkerSubjects, last_part, worker_announcements, worker_roll_call},
    worker::{CATALOGUE_SERVICE, is_worker_group},
};

/// The processes of a cluster.
pub struct NatsPeers {
    connection: NatsConnection,
    number: u64,
    subjects: Subjects,
    table: Arc<ExchangeTable>,
    services: Arc<Services>,
    members: Arc<Members>,
    /// End with this value.
    tasks: Mutex<JoinSet<()>>,
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
        let (table, outbox) = ExchangeTable::new(
            connection.clone(),
            subjects.own_exchanges(),
            ObjectStore::of_gateway(connection.clone(), subjects.objects()),
            ObjectRoute { bucket: Bucket::of_gateways(connection.prefix()), worker_subjects: None },
        );
        let services = Arc::new(Services::default());
        let client = connection.client();
        let failed = |error: &dyn fmt::Display| NatsConnectError::Unreachable {
            servers: connection.addresses().to_owned(),
            reason: error.to_string(),
        };
        let exchanges = format!("{}.*", subjects.own_exchanges());
        let mut exchanges = client.subscribe(exchanges).await.map_err(|error| failed(&error))?;
        let requests = client.subscribe(subjects.own_requests()).await.map_err(|error| failed(&error))?;
        let mut notices = client.subscribe(subjects.notices()).await.map_err(|error| failed(&error))?;
        let joined = Members::join(client, &subjects, number, Arc::clone(connection.name())).await;
        let members = joined.map_err(|error| failed(&error))?;
        // Others reach this process from now on.
        connection.round_trip().await?;
        table.objects().begin_check(&table.own_route().bucket);
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
        tasks.spawn(Arc::clone(&members).watch(client.clone(), subjects.clone()));
        Ok(Self { connection, number, subjects, table, services, members, tasks: Mutex::new(tasks) })
    }

    /// Sets what this process does for its peers under a name without dots and spaces.
    pub fn register(&self, name: &str, service: Arc<dyn PeerService>) {
        self.services.register(name, service);
    }

    /// Tells the observer what workers of all groups announce.
    ///
    /// # Errors
    /// If NATS does not accept the subscription.
    pub async fn watch_workers(&self, observer: Arc<dyn WorkerObserver>) -> Result<(), NatsConnectError> {
        let subject = worker_announcements(self.connection.prefix(), "*");
        let subscribed = self.connection.client().subscribe(subject).await;
        let mut announcements = subscribed.map_err(|error| NatsConnectError::Unreachable {
            servers: self.connection.addresses().to_owned(),
            reason: error.to_string(),
        })?;
        self.tasks.lock().spawn(async move {
            while let Some(message) = announcements.next().await {
                let group = last_part(&message.subject);
                if is_worker_group(group) {
                    observer.announced(group, &message.payload);
                }
            }
        });
        Ok(())
    }

    fn worker_subjects(&self, group: &str) -> WorkerSubjects {
        WorkerSubjects::new(Arc::clone(self.connection.prefix()), group)
    }

    fn worker_route(&self, group: &str) -> ObjectRoute {
        ObjectRoute {
            bucket: Bucket::of_group(self.connection.prefix(), group),
            worker_subjects: Some(self.worker_subjects(group).objects().into()),
        }
    }

    /// Whether messages over the NATS limit pass through the JetStream object store: between this gateway and the workers of a
    /// group, or without a group between gateways. The object store is checked once for each connection; if the check has not
    /// ended yet, this waits for it.
    pub async fn uses_object_store(&self, group: Option<&str>) -> bool {
        let bucket = match group {
            Some(group) => self.worker_route(group).bucket,
            None => self.table.own_route().bucket.clone(),
        };
        self.table.objects().is_usable(&bucket).await
    }

    async fn open_at(
        &self,
        subject: String,
        request: Vec<u8>,
        route: ObjectRoute,
    ) -> Result<Box<dyn Exchange>, PeerError> {
        Ok(Box::new(self.table.open(subject, request, route).await?))
    }

    /// Leaves the cluster. Exchanges go on until this value is dropped.
    pub async fn leave(&self) {
        self.members.leave(self.connection.client(), &self.subjects).await;
    }

    /// The processes of the cluster, this one included, with those that were lost in the last minutes.
    pub fn all_members(&self) -> Vec<ClusterMember> {
        self.members.all()
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
        Box::pin(self.open_at(
            self.subjects.request(process, service),
            request,
            self.table.own_route().clone(),
        ))
    }

    fn notify_all(&self, service: &str, message: Vec<u8>) {
        let (client, subject) = (self.connection.client().clone(), self.subjects.notice(service));
        let sender = format!("{:016x}", self.number);
        if !self.connection.is_connected() {
            return;
        }
        // A notice may get lost, so nobody waits for its sending.
        tokio::spawn(async move { drop(client.publish_with_reply(subject, sender, message.into()).await) });
    }
}

impl WorkerNetwork for NatsPeers {
    fn request_announcements(&self) {
        if !self.connection.is_connected() {
            return;
        }
        let (client, subject) =
            (self.connection.client().clone(), worker_roll_call(self.connection.prefix()));
        // May get lost, so nobody waits for its sending.
        tokio::spawn(async move { drop(client.publish(subject, Vec::new().into()).await) });
    }

    fn is_connected(&self) -> bool {
        self.connection.is_connected()
    }

    fn open_process<'a>(
        &'a self,
        group: &'a str,
        process: u64,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>> {
        let subject = self.worker_subjects(group).request(process, CATALOGUE_SERVICE);
        Box::pin(self.open_at(subject, Vec::new(), self.worker_route(group)))
    }

    fn open_tool<'a>(
        &'a self,
        group: &'a str,
        endpoint: &'a WorkerEndpoint,
        request: Vec<u8>,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>> {
        let subject = self.worker_subjects(group).call(endpoint);
        Box::pin(self.open_at(subject, request, self.worker_route(group)))
    }
}

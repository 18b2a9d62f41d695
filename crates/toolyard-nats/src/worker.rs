//! [`NatsWorker`]: a process of a group of workers, as NATS sees it: a service with one endpoint per tool.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use async_nats::service::{Service, ServiceExt as _, endpoint::Endpoint};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::{sync::Notify, task::JoinSet};
use toolyard_core::{BoxFuture, PeerError, PeerService, WorkerEndpoint, WorkerTransport};

use crate::{
    connection::{NatsConnectError, NatsConnection},
    exchange::table::{ExchangeTable, send_all},
    objects::{Bucket, ObjectRoute, ObjectStore},
    services::{ExchangeServer, Services, serve_requests},
    subjects::{ProcessNumber, WorkerSubjects, worker_roll_call},
};

/// Lists the tools of a process.
pub(crate) const CATALOGUE_SERVICE: &str = "catalogue";
/// Receives calls.
const CALL_SERVICE: &str = "call";
/// The longest name of a group.
const MAX_GROUP_LENGTH: usize = 64;
/// How long calls of a definition that is not served any more are still received, so that they are refused: a request that NATS
/// delivers at the moment of unsubscribing would be lost.
const RETIREMENT: Duration = Duration::from_secs(2);

/// Whether a text can be the name of a group of workers: 1 to 64 of `a` to `z`, digits, `-` and `_`.
pub fn is_worker_group(text: &str) -> bool {
    let is_character =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=MAX_GROUP_LENGTH).contains(&text.len()) && text.bytes().all(is_character)
}

/// A process of a group of workers.
pub struct NatsWorker {
    connection: NatsConnection,
    subjects: WorkerSubjects,
    table: Arc<ExchangeTable>,
    services: Arc<Services>,
    /// Registered until it is stopped; dropping it does nothing.
    service: Mutex<Option<Service>>,
    /// The endpoints that are served, with what ends each.
    endpoints: tokio::sync::Mutex<HashMap<WorkerEndpoint, Arc<Notify>>>,
    /// End with this value.
    tasks: Mutex<JoinSet<()>>,
}

impl fmt::Debug for NatsWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsWorker").field("subjects", &self.subjects).finish_non_exhaustive()
    }
}

impl NatsWorker {
    /// Joins a group with this number, which no other process may have: a random one.
    ///
    /// # Errors
    /// If NATS does not accept the subscriptions.
    ///
    /// Without permissions, NATS refuses subscriptions later, which is logged.
    pub async fn join(
        connection: NatsConnection,
        group: &str,
        number: u64,
    ) -> Result<Self, NatsConnectError> {
        let subjects = WorkerSubjects::new(Arc::clone(connection.prefix()), group);
        let (table, outbox) = ExchangeTable::new(
            connection.clone(),
            subjects.exchanges(number),
            ObjectStore::of_worker(connection.clone(), subjects.objects()),
            ObjectRoute { bucket: Bucket::of_group(connection.prefix(), group), worker_subjects: None },
        );
        let services = Arc::new(Services::default());
        let client = connection.client();
        let failed = |error: &dyn fmt::Display| NatsConnectError::Unreachable {
            servers: connection.addresses().to_owned(),
            reason: error.to_string(),
        };
        let subscribe =
            async |subject: String| client.subscribe(subject).await.map_err(|error| failed(&error));
        let mut exchanges = subscribe(format!("{}.*", subjects.exchanges(number))).await?;
        let requests = subscribe(subjects.request(number, "*")).await?;
        let mut roll_calls = subscribe(worker_roll_call(connection.prefix())).await?;
        let metadata = HashMap::from([
            ("process".to_owned(), ProcessNumber(number).to_string()),
            ("group".to_owned(), group.to_owned()),
            ("name".to_owned(), connection.name().to_string()),
        ]);
        let service = client
            .service_builder()
            .description("Tools of a Toolyard worker")
            .metadata(metadata)
            .start(subjects.service_name(), env!("CARGO_PKG_VERSION"))
            .await
            .map_err(|error| failed(&error))?;
        let mut tasks = JoinSet::new();
        let delivering = Arc::clone(&table);
        tasks.spawn(async move {
            while let Some(message) = exchanges.next().await {
                delivering.deliver(message);
            }
        });
        let notified = Arc::clone(&services);
        tasks.spawn(async move {
            while let Some(message) = roll_calls.next().await {
                if let Some(catalogue) = notified.find(CATALOGUE_SERVICE) {
                    catalogue.notified(&message.payload);
                }
            }
        });
        tasks.spawn(serve_requests(requests, Arc::clone(&table), Arc::clone(&services)));
        tasks.spawn(Arc::clone(&table).keep_alive());
        tasks.spawn(send_all(client.clone(), outbox));
        Ok(Self {
            connection,
            subjects,
            table,
            services,
            service: Mutex::new(Some(service)),
            endpoints: tokio::sync::Mutex::default(),
            tasks: Mutex::new(tasks),
        })
    }

    /// Sets what executes calls, and what lists the tools. The latter is notified when gateways ask workers to announce
    /// themselves.
    pub fn register(&self, calls: Arc<dyn PeerService>, catalogue: Arc<dyn PeerService>) {
        self.services.register(CALL_SERVICE, calls);
        self.services.register(CATALOGUE_SERVICE, catalogue);
    }

    /// The connection.
    pub fn connection(&self) -> &NatsConnection {
        &self.connection
    }

    /// Ends the registration and the endpoints, and closes the connection.
    pub async fn leave(&self) {
        let service = self.service.lock().take();
        if let Some(service) = service {
            // An error means that it has ended.
            let _ = service.stop().await;
        }
        self.connection.close().await;
    }

    async fn update(&self, wanted: &[WorkerEndpoint]) -> Result<(), PeerError> {
        let mut endpoints = self.endpoints.lock().await;
        let all_wanted: HashSet<&WorkerEndpoint> = wanted.iter().collect();
        endpoints.retain(|endpoint, end| {
            let is_wanted = all_wanted.contains(endpoint);
            if !is_wanted {
                end.notify_one();
            }
            is_wanted
        });
        for endpoint in wanted {
            if !endpoints.contains_key(endpoint) {
                let end = Arc::new(Notify::new());
                let added = self.add(endpoint).await?;
                let (table, services) = (Arc::clone(&self.table), Arc::clone(&self.services));
                self.tasks.lock().spawn(serve_endpoint(added, Arc::clone(&end), table, services));
                endpoints.insert(endpoint.clone(), end);
            }
        }
        Ok(())
    }

    async fn add(&self, endpoint: &WorkerEndpoint) -> Result<Endpoint, PeerError> {
        let (subject, name) = (self.subjects.call(endpoint), WorkerSubjects::endpoint_name(endpoint));
        let metadata = HashMap::from([
            ("tool".to_owned(), endpoint.tool.to_string()),
            ("definition".to_owned(), endpoint.definition.to_string()),
        ]);
        let builder = match &*self.service.lock() {
            Some(service) => service.endpoint_builder(),
            None => return Err(PeerError::NotReached("the worker has left".to_owned())),
        };
        let builder = builder.name(name).metadata(metadata).queue_group(subject.clone());
        builder.add(subject).await.map_err(|error| PeerError::NotReached(error.to_string()))
    }
}

/// Serves the requests at an endpoint, until some time after it is not wanted any more.
async fn serve_endpoint(
    mut endpoint: Endpoint,
    end: Arc<Notify>,
    table: Arc<ExchangeTable>,
    services: Arc<Services>,
) {
    let unwanted = async {
        end.notified().await;
        tokio::time::sleep(RETIREMENT).await;
    };
    let mut unwanted = std::pin::pin!(unwanted);
    let (mut server, mut is_stopped) = (ExchangeServer::new(table), false);
    loop {
        tokio::select! {
            request = endpoint.next() => match request {
                Some(request) => server.accept(request.message, services.find(CALL_SERVICE)),
                None => break,
            },
            () = &mut unwanted, if !is_stopped => {
                is_stopped = true;
                // An error means that the connection has ended.
                let _ = endpoint.stop().await;
            }
        }
    }
    server.finish().await;
}

impl WorkerTransport for NatsWorker {
    fn announce(&self, announcement: Vec<u8>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.connection.is_connected() {
                // May get lost.
                let _ = self
                    .connection
                    .client()
                    .publish(self.subjects.announcements(), announcement.into())
                    .await;
            }
        })
    }

    fn serve<'a>(&'a self, endpoints: &'a [WorkerEndpoint]) -> BoxFuture<'a, Result<(), PeerError>> {
        Box::pin(self.update(endpoints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_group_is_one_part_of_a_subject() {
        for good in ["office", "reports-2", "a_b", "7"] {
            assert!(is_worker_group(good), "{good}");
        }
        for bad in ["", "a.b", "*", ">", "a b", "A", "ä", &"a".repeat(65)] {
            assert!(!is_worker_group(bad), "{bad}");
        }
    }
}

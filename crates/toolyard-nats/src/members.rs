//! [`Members`]: which processes of the cluster are alive. Each registers with NATS' service API and answers its pings; one ping
//! is enough for all, because the answers go to a subject that all of them read.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::{
    Client,
    connection::State,
    service::{PingResponse, Service, ServiceExt as _},
};
use futures_util::StreamExt as _;
use tokio::time::Instant;

use crate::{
    subjects::{ProcessNumber, Subjects},
    sync::lock,
};

/// A process pings if it heard no other one ping for this long, give or take a quarter.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// A process that did not answer for so long is not a member.
const SILENT_AFTER: Duration = Duration::from_millis(3_500);
/// The field of a service's metadata that has the number of its process.
const PROCESS: &str = "process";

/// The processes that are alive.
#[derive(Debug)]
pub(crate) struct Members {
    own: u64,
    heard: Mutex<BTreeMap<u64, Instant>>,
    answers: Mutex<Option<async_nats::Subscriber>>,
    /// Registered until it is stopped; dropping it does nothing.
    service: Mutex<Option<Service>>,
}

impl Members {
    pub(crate) async fn join(
        client: &Client,
        subjects: &Subjects,
        own: u64,
    ) -> Result<Arc<Self>, async_nats::Error> {
        let answers = client.subscribe(subjects.alive()).await?;
        let metadata = HashMap::from([(PROCESS.to_owned(), ProcessNumber(own).to_string())]);
        let service = client
            .service_builder()
            .description("A process of a Toolyard cluster")
            .metadata(metadata)
            .start(subjects.service_name(), env!("CARGO_PKG_VERSION"))
            .await?;
        Ok(Arc::new(Self {
            own,
            heard: Mutex::default(),
            answers: Mutex::new(Some(answers)),
            service: Mutex::new(Some(service)),
        }))
    }

    /// The numbers of the processes that are alive, this one included.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let now = Instant::now();
        let mut heard = lock(&self.heard);
        heard.retain(|_, at| now.duration_since(*at) < SILENT_AFTER);
        let mut numbers: Vec<u64> = heard.keys().copied().chain([self.own]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Pings and listens, for ever.
    pub(crate) async fn watch(self: Arc<Self>, client: Client, subjects: Subjects) {
        let Some(mut answers) = lock(&self.answers).take() else { return };
        let (ping, alive) = (format!("$SRV.PING.{}", subjects.service_name()), subjects.alive());
        loop {
            let pause = PING_INTERVAL.mul_f64(0.75 + fastrand::f64() / 2.0);
            match tokio::time::timeout(pause, answers.next()).await {
                Ok(Some(answer)) => self.hear(&answer.payload),
                Ok(None) => return,
                Err(_elapsed) if client.connection_state() != State::Connected => {}
                // Nobody pinged lately.
                Err(_elapsed) => {
                    let _ = client.publish_with_reply(ping.clone(), alive.clone(), Vec::new().into()).await;
                }
            }
        }
    }

    /// Ends the registration.
    pub(crate) async fn leave(&self) {
        let service = lock(&self.service).take();
        if let Some(service) = service {
            // An error means that it has ended.
            let _ = service.stop().await;
        }
    }

    fn hear(&self, answer: &[u8]) {
        let number = serde_json::from_slice::<PingResponse>(answer)
            .ok()
            .and_then(|answer| u64::from_str_radix(answer.metadata.get(PROCESS)?, 16).ok());
        if let Some(number) = number {
            lock(&self.heard).insert(number, Instant::now());
        }
    }
}

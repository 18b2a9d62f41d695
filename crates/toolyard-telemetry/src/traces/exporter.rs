//! [`Traces`]: receives operations and exports them in the background.

use std::{
    collections::HashMap,
    num::NonZeroU128,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use toolyard_core::telemetry::{Operation, SpanContext, Telemetry};

use super::{
    Sampler, TraceConfig, TraceConfigError, http_client::ReqwestClient, queue::OperationQueue,
    span::SpanMapper,
};

/// Operations that wait for export. More are dropped: a receiver that is down must not cost memory.
const MAX_QUEUED_OPERATIONS: usize = 8_192;
/// Spans of one export.
const BATCH_SPANS: usize = 512;
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Records operations as spans and exports them in the background.
#[derive(Debug)]
pub struct Traces {
    sampler: Sampler,
    captures_content: bool,
    queue: Arc<OperationQueue>,
    stop: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Traces {
    /// Starts the background task; must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If a header or TLS cannot be used. Whether the receiver can be reached is not checked.
    pub fn start(config: TraceConfig) -> Result<Arc<Self>, TraceConfigError> {
        let queue = Arc::new(OperationQueue::new(MAX_QUEUED_OPERATIONS, BATCH_SPANS));
        let stop = Arc::new(Notify::new());
        let (sampler, captures_content, interval) =
            (config.sampler, config.captures_content, config.interval);
        let export = Export {
            exporter: build_exporter(config)?,
            spans: SpanMapper::default(),
            failures: Failures::default(),
        };
        let task = tokio::spawn(export.run(Arc::clone(&queue), Arc::clone(&stop), interval));
        Ok(Arc::new(Self { sampler, captures_content, queue, stop, task: Mutex::new(Some(task)) }))
    }

    /// Exports what is queued and ends the background task. Waits no longer than `limit`; later operations are dropped.
    pub async fn shut_down(&self, limit: Duration) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.stop.notify_one();
        if let Some(task) = task {
            let abort = task.abort_handle();
            if timeout(limit, task).await.is_err() {
                abort.abort();
                tracing::warn!("the last spans were not exported in time");
            }
        }
    }
}

impl Telemetry for Traces {
    fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext> {
        Some(self.sampler.start_span(parent))
    }

    fn start_trace(&self, trace_id: NonZeroU128) -> Option<SpanContext> {
        Some(self.sampler.start_trace(trace_id))
    }

    fn record(&self, operation: Operation) {
        if operation.span.is_some_and(|span| span.context.is_sampled) {
            self.queue.push(operation);
        }
    }

    fn captures_content(&self) -> bool {
        self.captures_content
    }
}

fn build_exporter(config: TraceConfig) -> Result<SpanExporter, TraceConfigError> {
    let failed = |error: &dyn std::fmt::Display| TraceConfigError::Exporter(error.to_string());
    let client = ReqwestClient::new(EXPORT_TIMEOUT).map_err(|error| failed(&error))?;
    let headers: HashMap<String, String> = config.headers.into_iter().collect();
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(config.url)
        .with_timeout(EXPORT_TIMEOUT)
        .with_headers(headers)
        .build()
        .map_err(|error| failed(&error))?;
    let attributes = config.resource_attributes.into_iter().map(|(name, value)| KeyValue::new(name, value));
    let resource = Resource::builder_empty()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attributes(attributes)
        .with_service_name(config.service_name)
        .build();
    exporter.set_resource(&resource);
    Ok(exporter)
}

/// The background task.
struct Export {
    exporter: SpanExporter,
    spans: SpanMapper,
    failures: Failures,
}

impl Export {
    async fn run(mut self, queue: Arc<OperationQueue>, stop: Arc<Notify>, interval: Duration) {
        loop {
            let is_stopping = tokio::select! {
                biased;
                () = stop.notified() => true,
                () = queue.wait_for_batch() => false,
                () = sleep(interval) => false,
            };
            let mut operations = queue.take().into_iter();
            loop {
                let batch: Vec<SpanData> = operations
                    .by_ref()
                    .take(BATCH_SPANS)
                    .filter_map(|operation| self.spans.map(operation))
                    .collect();
                if batch.is_empty() {
                    break;
                }
                self.export(batch).await;
            }
            self.failures.add_dropped(queue.take_dropped());
            self.failures.report_if_due(is_stopping);
            if is_stopping {
                return;
            }
        }
    }

    async fn export(&mut self, batch: Vec<SpanData>) {
        let spans = batch.len();
        if let Err(error) = self.exporter.export(batch).await {
            self.failures.add(spans, error.to_string());
        }
    }
}

/// Spans that were lost, reported at most once a minute.
#[derive(Debug, Default)]
struct Failures {
    lost: u64,
    error: Option<String>,
    reported_at: Option<Instant>,
}

impl Failures {
    fn add(&mut self, spans: usize, error: String) {
        self.lost += u64::try_from(spans).unwrap_or(u64::MAX);
        self.error = Some(error);
    }

    fn add_dropped(&mut self, spans: u64) {
        self.lost += spans;
    }

    fn report_if_due(&mut self, is_last: bool) {
        let is_due = self.reported_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL);
        if self.lost == 0 || !(is_due || is_last) {
            return;
        }
        let error = self.error.take().unwrap_or_else(|| "the receiver is too slow".to_owned());
        tracing::warn!(
            lost_spans = self.lost,
            error,
            "spans were not exported; hint: check `[telemetry] otlp_endpoint`"
        );
        (self.lost, self.reported_at) = (0, Some(Instant::now()));
    }
}

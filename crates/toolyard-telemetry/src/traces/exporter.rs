//! [`Traces`]: receives operations and exports them in a thread of its own, so that no call waits for it.

use std::{num::NonZeroU128, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep, timeout},
};
use toolyard_core::telemetry::{Operation, SpanContext, Telemetry};

use super::{
    Sampler, TraceConfig, TraceConfigError,
    export_request::SpanOrigin,
    http_client::{ExportError, OtlpClient},
    queue::{OperationQueue, QueueLimits},
    span::span_of,
};

/// What may wait for export. More is dropped: a receiver that is down must not cost memory.
const QUEUE_LIMITS: QueueLimits =
    QueueLimits { operations: 8_192, content_bytes: 16 << 20, batch: BATCH_SPANS };
/// Spans of one export.
const BATCH_SPANS: usize = 1_024;
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
const THREAD_NAME: &str = "otlp-export";
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Records operations as spans and exports them in a thread of its own.
#[derive(Debug)]
pub struct Traces {
    sampler: Sampler,
    captures_content: bool,
    queue: Arc<OperationQueue>,
    stop: Arc<Notify>,
    /// Completes when the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Traces {
    /// Starts the thread that exports.
    ///
    /// # Errors
    /// If a header or TLS cannot be used, or no thread can be started. Whether the receiver can be reached is not checked.
    pub fn start(config: TraceConfig) -> Result<Arc<Self>, TraceConfigError> {
        let queue = Arc::new(OperationQueue::new(QUEUE_LIMITS));
        let stop = Arc::new(Notify::new());
        let (sampler, captures_content, interval) =
            (config.sampler, config.captures_content, config.interval);
        let mut resource = config.resource_attributes;
        let own = [
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.name", config.service_name),
        ];
        for (key, value) in own {
            // Keys are unique; `OTEL_RESOURCE_ATTRIBUTES` counts more.
            if !resource.iter().any(|(other, _)| other == key) {
                resource.push((key.to_owned(), value));
            }
        }
        let export = Export {
            client: OtlpClient::new(&config.url, config.headers, EXPORT_TIMEOUT)?,
            origin: SpanOrigin::new(&resource),
            failures: Failures::default(),
        };
        let failed = |error: std::io::Error| TraceConfigError::Exporter(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (ended_sender, ended) = oneshot::channel();
        let run = export.run(Arc::clone(&queue), Arc::clone(&stop), interval);
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
        thread
            .spawn(move || {
                runtime.block_on(run);
                let _ = ended_sender.send(());
            })
            .map_err(failed)?;
        Ok(Arc::new(Self { sampler, captures_content, queue, stop, ended: Mutex::new(Some(ended)) }))
    }

    /// Exports what is queued and ends the thread. Waits no longer than `limit`; later operations are dropped.
    pub async fn shut_down(&self, limit: Duration) {
        let ended = self.ended.lock().take();
        self.stop.notify_one();
        let Some(ended) = ended else { return };
        let is_in_time = timeout(limit, ended).await.is_ok();
        let lost_spans = self.queue.close();
        if !is_in_time || lost_spans > 0 {
            tracing::warn!(lost_spans, "the last spans were not exported in time");
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

    fn wants_details(&self, span: Option<&SpanContext>) -> bool {
        span.is_some_and(|span| span.is_sampled)
    }

    fn record(&self, operation: Box<Operation>) {
        if operation.span.is_some_and(|span| span.context.is_sampled) {
            self.queue.push(operation);
        }
    }

    fn captures_content(&self) -> bool {
        self.captures_content
    }
}

/// What the thread does.
struct Export {
    client: OtlpClient,
    origin: SpanOrigin,
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
            // One batch at a time, so that operations which wait count for the limits of the queue.
            while let Some(batch) = queue.take(BATCH_SPANS) {
                self.export(&batch).await;
                // Also while there is always more to export: a receiver that does not answer must be noticed.
                self.failures.add_dropped(queue.take_dropped());
                self.failures.report_if_due(false);
            }
            self.failures.add_dropped(queue.take_dropped());
            self.failures.report_if_due(is_stopping);
            if is_stopping {
                return;
            }
        }
    }

    async fn export(&mut self, batch: &[Box<Operation>]) {
        let spans: Vec<_> = batch.iter().filter_map(|operation| span_of(operation)).collect();
        if spans.is_empty() {
            return;
        }
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        match self.client.send(self.origin.export(spans)).await {
            Ok(()) => {}
            Err(error @ ExportError::Rejected { spans, .. }) => self.failures.add(spans, error.to_string()),
            Err(error) => self.failures.add(count, error.to_string()),
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
    fn add(&mut self, spans: u64, error: String) {
        self.lost = self.lost.saturating_add(spans);
        self.error = Some(error);
    }

    fn add_dropped(&mut self, spans: u64) {
        self.lost = self.lost.saturating_add(spans);
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

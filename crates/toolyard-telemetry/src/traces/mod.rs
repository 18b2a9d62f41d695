//! Spans by the OpenTelemetry conventions for MCP and generative AI, exported over OTLP (HTTP, protobuf).
//!
//! ```text
//! config.rs          TraceConfig: the receiver, sampling and the resource; standard environment variables
//! sampler.rs         Sampler: which traces are recorded
//! queue.rs           OperationQueue: finished operations that wait for export
//! exporter.rs        Traces: receives operations, exports them in the background
//! export_request.rs  the body of an export
//! span.rs            an operation as a span
//! http_client.rs     OtlpClient: sends exports with reqwest
//! ```
//!
//! A call pays for the ids of its span and for a push on the queue. Everything else happens in one other thread. If the
//! receiver is down or too slow, the queue fills, further operations are dropped and counted, and a warning is logged at most
//! once a minute.

mod config;
mod export_request;
mod exporter;
mod http_client;
mod queue;
mod sampler;
mod span;

pub use self::{
    config::{TraceConfig, TraceConfigError},
    exporter::Traces,
    sampler::Sampler,
};

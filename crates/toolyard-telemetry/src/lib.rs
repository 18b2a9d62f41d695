//! Exports the operations of Toolyard as OpenTelemetry traces and as metrics.
//!
//! ```text
//! fan_out.rs  TelemetryBuilder: one `Telemetry` for several receivers
//! traces/     spans over OTLP (feature `otlp`)
//! metrics/    counters and histograms (feature `metrics`)
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use toolyard_core::telemetry::Operation;
//! use toolyard_telemetry::{OperationObserver, TelemetryBuilder};
//!
//! #[derive(Debug)]
//! struct PrintErrors;
//!
//! impl OperationObserver for PrintErrors {
//!     fn observe(&self, operation: &Operation) {
//!         if let Some(error) = &operation.error_type {
//!             eprintln!("{:?}: {error}", operation.kind);
//!         }
//!     }
//! }
//!
//! assert!(TelemetryBuilder::default().build().is_none(), "nothing receives operations");
//! let telemetry = TelemetryBuilder::default().observe(Arc::new(PrintErrors)).build().unwrap();
//! assert!(telemetry.start_span(None).is_none(), "no traces are recorded");
//! ```

mod fan_out;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod traces;

pub use fan_out::{OperationObserver, TelemetryBuilder};

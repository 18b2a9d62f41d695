//! [`RecordingTelemetry`]: keeps operations in memory, for tests.

use parking_lot::Mutex;

use super::{Operation, SpanContext, Telemetry};

/// Samples every trace and keeps all operations in memory, for tests.
#[derive(Debug, Default)]
pub struct RecordingTelemetry {
    operations: Mutex<Vec<Operation>>,
}

impl RecordingTelemetry {
    /// The operations so far, in the order in which they ended.
    pub fn operations(&self) -> Vec<Operation> {
        self.operations.lock().clone()
    }

    /// Removes and returns the operations.
    pub fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut *self.operations.lock())
    }
}

impl Telemetry for RecordingTelemetry {
    fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext> {
        Some(parent.map_or_else(SpanContext::root, SpanContext::child))
    }

    fn record(&self, operation: Box<Operation>) {
        self.operations.lock().push(*operation);
    }
}

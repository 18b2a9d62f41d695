//! [`ObjectError`]: why a message cannot pass through the object store.

use std::fmt;

use crate::objects::bucket::Bucket;

/// Why an object cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ObjectError {
    #[error("no bucket `{0}`: JetStream is not enabled, or no gateway created the bucket")]
    NoBucket(Bucket),
    #[error("JetStream does not respond for bucket `{0}`; hint: check the permissions of the NATS user")]
    NoResponse(Bucket),
    #[error("JetStream refused an operation on bucket `{bucket}`: {reason}")]
    Refused { bucket: Bucket, reason: String },
    #[error("bucket `{bucket}` cannot be reached: {reason}")]
    NotConnected { bucket: Bucket, reason: String },
    #[error("an object is not in bucket `{0}`")]
    Missing(Bucket),
    #[error("an object of {length} bytes stopped after {received}")]
    Incomplete { received: usize, length: usize },
    #[error("an object has another length or digest than announced")]
    Mismatch,
    #[error("an object is longer than 64 MiB")]
    TooLong,
    #[error("the system has no random numbers")]
    NoRandomness,
}

impl ObjectError {
    /// NATS did not take a message for this bucket.
    pub(super) fn not_connected(bucket: &Bucket, error: &dyn fmt::Display) -> Self {
        Self::NotConnected { bucket: bucket.clone(), reason: error.to_string() }
    }
}

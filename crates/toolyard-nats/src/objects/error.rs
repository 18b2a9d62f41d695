//! [`ObjectError`]: why a message cannot pass through the object store.

use std::fmt;

use crate::objects::bucket::Bucket;

/// Why an object cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ObjectError {
    /// Long messages need a bucket in the object store of NATS, which does not exist.
    ///
    /// Remedy: start NATS with JetStream (`nats-server -js`), and a gateway before the workers; without it, long
    /// messages are sent in several frames.
    #[error("no bucket `{0}`: JetStream is not enabled, or no gateway created the bucket")]
    NoBucket(Bucket),
    /// JetStream does not answer: it is off, overloaded, or the NATS user may not use it.
    ///
    /// Remedy: give the user of the gateways the permissions for `$O` and `$JS` in docs/guide/workers.md, or do without
    /// JetStream.
    #[error("JetStream does not respond for bucket `{0}`; hint: check the permissions of the NATS user")]
    NoResponse(Bucket),
    /// JetStream refused an operation on a bucket; the text is its answer.
    ///
    /// Remedy: if the bucket is full, give it more room (`nats object add BUCKET --max-bucket-size 2GB`); otherwise
    /// check the permissions of the NATS user.
    #[error("JetStream refused an operation on bucket `{bucket}`: {reason}")]
    Refused { bucket: Bucket, reason: String },
    /// NATS cannot be reached, so long messages cannot be stored there.
    ///
    /// Remedy: check the connection to NATS: `toolyard doctor`.
    #[error("bucket `{bucket}` cannot be reached: {reason}")]
    NotConnected { bucket: Bucket, reason: String },
    /// A long message was deleted or expired (after 10 minutes) before it was read.
    ///
    /// Remedy: check on the server whether the call had an effect before you repeat it; give the bucket more room and a
    /// longer `--ttl`.
    #[error("an object is not in bucket `{0}`")]
    Missing(Bucket),
    /// A long message ended early in the object store.
    ///
    /// Remedy: check on the server whether the call had an effect before you repeat it; see the log of NATS.
    #[error("an object of {length} bytes stopped after {received}")]
    Incomplete { received: usize, length: usize },
    /// A long message was changed in the object store.
    ///
    /// Remedy: check who else may write to the bucket; run the same version of Toolyard everywhere.
    #[error("an object has another length or digest than announced")]
    Mismatch,
    /// Arguments or a result exceed the limit between processes.
    ///
    /// Remedy: let the tool return less, or a reference to the data.
    #[error("an object is longer than 64 MiB")]
    TooLong,
    /// The operating system provides no random numbers.
    ///
    /// Remedy: check `/dev/urandom` and the sandbox of the process.
    #[error("the operating system provides no random numbers")]
    NoRandomness,
}

impl ObjectError {
    /// NATS did not take a message for this bucket.
    pub(super) fn not_connected(bucket: &Bucket, error: &dyn fmt::Display) -> Self {
        Self::NotConnected { bucket: bucket.clone(), reason: error.to_string() }
    }
}

//! Fields that are not read and written as serde does by default, and the error for messages that cannot be read.

use serde::{Deserialize, Deserializer};

/// Why a message was refused. The content of the message is not quoted, because it may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::remote_call) enum MalformedMessage {
    /// Another process of the cluster sent a message that this version cannot read.
    ///
    /// Remedy: run the same version of Toolyard in all gateways and workers.
    #[error("not the expected JSON at line {line}, column {column}")]
    Json { line: usize, column: usize },
    /// A message of another process is ambiguous, so it is refused.
    ///
    /// Remedy: run the same version of Toolyard in all gateways and workers; check who else may publish to the NATS
    /// subjects.
    #[error("several kinds of messages in one")]
    Ambiguous,
}

impl From<serde_json::Error> for MalformedMessage {
    fn from(error: serde_json::Error) -> Self {
        Self::Json { line: error.line(), column: error.column() }
    }
}

/// Reads an optional field such that `null` is a value like any other, as it is for JSON that is passed through.
pub(super) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Data owners in the form that stores have.
pub(super) mod owner_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use toolyard_core::DataOwner;

    pub(in super::super) fn serialize<S: Serializer>(
        owner: &DataOwner,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&owner.as_text())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<DataOwner, D::Error> {
        let text = String::deserialize(deserializer)?;
        DataOwner::from_text(&text).map_err(D::Error::custom)
    }
}

/// Spans as `traceparent`.
pub(super) mod span_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use toolyard_core::telemetry::SpanContext;

    pub(in super::super) fn serialize<S: Serializer>(
        span: &Option<SpanContext>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => serializer.serialize_some(span.to_traceparent().as_str()),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SpanContext>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse()).transpose().map_err(D::Error::custom)
    }
}

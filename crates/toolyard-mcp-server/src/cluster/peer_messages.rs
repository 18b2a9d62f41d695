//! The messages between the MCP servers of a cluster, as JSON.
//!
//! They are read strictly: an unknown or missing field makes a message malformed. A new field therefore needs a new kind of message
//! while processes of two versions may run side by side.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use toolyard_core::RawJson;
use toolyard_mcp::RpcError;

use crate::interaction::input_requests::InputResponse;

/// Begins an exchange.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PeerRequest {
    /// A client responded to an input request. The reply is [`PeerReply::Accepted`] or [`PeerReply::Unknown`].
    DeliverResponse(ForwardedResponse),
    /// A client repeated a suspended call with input. The replies are messages for it, then an outcome; or [`PeerReply::Unknown`].
    /// If the requesting process ends the exchange, its client has disconnected.
    Resume(ForwardedCall),
}

/// A response to an input request of a legacy client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForwardedResponse {
    /// The session that sent it; authenticated by the process that received it.
    pub(crate) session_number: u64,
    /// The number of the input request.
    pub(crate) number: u64,
    pub(crate) response: ForwardedResponseBody,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ForwardedResponseBody {
    Result(RawJson),
    Error { code: i64, message: String },
}

/// A repeated call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForwardedCall {
    /// The endpoint and the caller of the repeated call; the state opens only with those of the suspended one.
    pub(crate) profile: String,
    pub(crate) owner_hash: [u8; 32],
    /// The hash of its method, name and arguments; the same holds.
    pub(crate) request_hash: [u8; 32],
    /// The sealed state.
    pub(crate) request_state: String,
    pub(crate) input_responses: Option<RawJson>,
    /// Which notifications the client wants from now on.
    pub(crate) progress_token: Option<RawJson>,
    pub(crate) log_level: Option<String>,
}

/// An answer to a [`PeerRequest`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PeerReply {
    Accepted,
    /// No such input request or call waits here.
    Unknown,
    /// The request was malformed, and nothing happened.
    Rejected,
    /// A notification for the client.
    Message(RawJson),
    /// The outcome of the call; also the next input requests.
    Outcome {
        /// The HTTP status.
        status: u16,
        /// Whether `body` is an error instead of a result.
        is_error: bool,
        /// Whether the tool reported an error, for telemetry.
        is_tool_error: bool,
        body: RawJson,
    },
}

/// What a process tells all others. It may get lost: then a call runs to its end, or a session stays valid elsewhere until it expires.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PeerNotification {
    /// A client cancelled a request that the sender does not have.
    RequestCancelled {
        session_number: u64,
        request_id: RawJson,
    },
    SessionEnded {
        session_number: u64,
        profile: String,
    },
}

/// A message of another process could not be read. Its content is not shown: it may be private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerMessageError {
    /// Another gateway sent a message that this version cannot read.
    ///
    /// Remedy: run the same version of Toolyard in all gateways; check who else may publish to the NATS subjects.
    #[error("malformed message from another process of the cluster, at byte {0}")]
    Malformed(usize),
    /// Another gateway sent a message that does not fit the exchange.
    ///
    /// Remedy: run the same version of Toolyard in all gateways; check who else may publish to the NATS subjects.
    #[error("unexpected message from another process of the cluster: {0}")]
    Unexpected(&'static str),
    /// A message to another gateway could not be written as JSON.
    ///
    /// Remedy: report it with the log: this is a defect of Toolyard.
    #[error("failed to encode a message to another process of the cluster")]
    Unencodable,
}

pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, PeerMessageError> {
    serde_json::to_vec(message).map_err(|_| PeerMessageError::Unencodable)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PeerMessageError> {
    // Messages are on one line.
    serde_json::from_slice(bytes).map_err(|error| PeerMessageError::Malformed(error.column()))
}

impl From<InputResponse> for ForwardedResponseBody {
    fn from(response: InputResponse) -> Self {
        match response {
            Ok(result) => Self::Result(result),
            Err(error) => Self::Error { code: error.code, message: error.message },
        }
    }
}

impl From<ForwardedResponseBody> for InputResponse {
    fn from(body: ForwardedResponseBody) -> Self {
        match body {
            ForwardedResponseBody::Result(result) => Ok(result),
            ForwardedResponseBody::Error { code, message } => Err(RpcError { code, message, data: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn payloads_survive_byte_for_byte() {
        let payload = r#"{"z":1.0, "a":1e400,"z":"\u00e9"}"#;
        let sent =
            PeerReply::Outcome { status: 200, is_error: false, is_tool_error: true, body: raw(payload) };
        match decode(&encode(&sent).unwrap()).unwrap() {
            PeerReply::Outcome { status: 200, is_error: false, is_tool_error: true, body } => {
                assert_eq!(body.get(), payload);
            }
            other => panic!("{other:?}"),
        }
        let response = ForwardedResponseBody::Result(raw(payload));
        let sent =
            PeerRequest::DeliverResponse(ForwardedResponse { session_number: u64::MAX, number: 1, response });
        match decode(&encode(&sent).unwrap()).unwrap() {
            PeerRequest::DeliverResponse(ForwardedResponse {
                session_number: u64::MAX,
                number: 1,
                response: ForwardedResponseBody::Result(body),
            }) => assert_eq!(body.get(), payload),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn malformed_messages_are_refused_without_their_content() {
        for text in [
            "",
            "{}",
            "\"accepted\"x",
            r#"{"accepted":1}"#,
            r#"{"message":{"private":}}"#,
            r#"{"outcome":{"status":200,"is_error":false,"is_tool_error":false}}"#,
            r#"{"outcome":{"status":70000,"is_error":false,"is_tool_error":false,"body":1}}"#,
            r#"{"outcome":{"status":200,"is_error":false,"is_tool_error":false,"body":1,"private":2}}"#,
        ] {
            let error = decode::<PeerReply>(text.as_bytes()).unwrap_err();
            assert!(!error.to_string().contains("private"), "{text}");
        }
        assert!(decode::<PeerReply>(b"{\"message\":\"\xff\"}").is_err());
    }

    proptest! {
        #[test]
        fn no_message_causes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode::<PeerRequest>(&bytes);
            let _ = decode::<PeerReply>(&bytes);
            let _ = decode::<PeerNotification>(&bytes);
        }
    }
}

//! The kinds of messages that follow a request, in both directions.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use toolyard_core::{CallProgress, RawJson, ToolError, ToolOutput};

use super::{
    error::WireError,
    field::MalformedMessage,
    input::{WireAnswer, WireInputRequest},
    output::WireOutput,
};

/// A message of the executor to the caller, to be written.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::remote_call) enum OutgoingMessage<'a> {
    Progress(WireProgress<'a>),
    Log(WireLog),
    /// Asks the caller for input.
    Input(WireInput<'a>),
    /// The input is not needed any more.
    CancelInput(InputNumber),
    /// A request that was not made because the caller does not support it.
    Unsupported(WireInputRequest<'a>),
    /// The call is active; extends its deadline.
    Activity(NoFields),
    Success(WireOutput<'a>),
    Failure(Box<WireError>),
}

impl OutgoingMessage<'_> {
    pub(in crate::remote_call) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

/// A message of the executor, as the caller reads it.
pub(in crate::remote_call) enum ExecutorMessage {
    Progress {
        progress: CallProgress,
        is_activity: bool,
    },
    Log(RawJson),
    Input(WireInput<'static>),
    CancelInput(u64),
    Unsupported(WireInputRequest<'static>),
    Activity,
    Outcome(Box<Result<ToolOutput, ToolError>>),
    /// A kind of a later version, to be ignored.
    Unknown,
}

/// The fields of which a message of the executor has one. An enum would refuse unknown kinds, and one with a tag field could not
/// pass JSON through unparsed.
#[derive(Deserialize)]
struct ExecutorMessageFields {
    progress: Option<WireProgress<'static>>,
    log: Option<WireLog>,
    input: Option<WireInput<'static>>,
    cancel_input: Option<InputNumber>,
    unsupported: Option<WireInputRequest<'static>>,
    activity: Option<NoFields>,
    success: Option<WireOutput<'static>>,
    failure: Option<Box<WireError>>,
}

impl ExecutorMessage {
    pub(in crate::remote_call) fn decode(message: &[u8]) -> Result<Self, MalformedMessage> {
        let ExecutorMessageFields {
            progress,
            log,
            input,
            cancel_input,
            unsupported,
            activity,
            success,
            failure,
        } = serde_json::from_slice(message)?;
        let mut kinds = [
            success.map(|output| Self::Outcome(Box::new(Ok(output.into())))),
            failure.map(|error| Self::Outcome(Box::new(Err((*error).into())))),
            progress.map(Self::from),
            log.map(|log| Self::Log(log.params)),
            input.map(Self::Input),
            cancel_input.map(|input| Self::CancelInput(input.number)),
            unsupported.map(Self::Unsupported),
            activity.map(|NoFields {}| Self::Activity),
        ]
        .into_iter()
        .flatten();
        match (kinds.next(), kinds.next()) {
            (None, _) => Ok(Self::Unknown),
            (Some(message), None) => Ok(message),
            (Some(_), Some(_)) => Err(MalformedMessage::Ambiguous),
        }
    }
}

impl From<WireProgress<'static>> for ExecutorMessage {
    fn from(wire: WireProgress<'static>) -> Self {
        let WireProgress { progress, total, message, is_activity } = wire;
        let message = message.map(Cow::into_owned);
        Self::Progress { progress: CallProgress { progress, total, message }, is_activity }
    }
}

/// A message of the caller to the executor.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::remote_call) enum CallerMessage {
    Answer(WireAnswer),
    /// A kind of a later version, to be ignored.
    #[serde(skip)]
    Unknown,
}

#[derive(Deserialize)]
struct CallerMessageFields {
    answer: Option<WireAnswer>,
}

impl CallerMessage {
    pub(in crate::remote_call) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    pub(in crate::remote_call) fn decode(message: &[u8]) -> Result<Self, MalformedMessage> {
        let CallerMessageFields { answer } = serde_json::from_slice(message)?;
        Ok(answer.map_or(Self::Unknown, Self::Answer))
    }
}

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireProgress<'a> {
    progress: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    /// Whether the call has recorded activity since the last message that said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_activity: bool,
}

impl<'a> WireProgress<'a> {
    /// `None` if the progress is no number, which JSON cannot say.
    pub(in crate::remote_call) fn new(progress: &'a CallProgress, is_activity: bool) -> Option<Self> {
        progress.progress.is_finite().then(|| Self {
            progress: progress.progress,
            total: progress.total.filter(|total| total.is_finite()),
            message: progress.message.as_deref().map(Cow::Borrowed),
            is_activity,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireLog {
    pub(in crate::remote_call) params: RawJson,
}

/// Input requests that are answered together.
#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireInput<'a> {
    pub(in crate::remote_call) number: u64,
    pub(in crate::remote_call) requests: Vec<WireInputRequest<'a>>,
}

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct InputNumber {
    pub(in crate::remote_call) number: u64,
}

/// A message that says everything by its kind.
#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct NoFields {}

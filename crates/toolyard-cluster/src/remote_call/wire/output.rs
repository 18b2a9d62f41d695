//! The output of a call, including what [`ToolOutput`] does not serialize because it must not be stored.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use toolyard_core::{ContentBlock, OutputMeta, RawJson, ToolOutput};

use super::field::present;

#[derive(Serialize, Deserialize)]
pub(in crate::remote_call) struct WireOutput<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<WireBlock<'a>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    structured: Option<RawJson>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    budget_exempt: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    input_required: bool,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    raw: Option<RawJson>,
    meta: Cow<'a, OutputMeta>,
}

/// A block of content. The serialized form of [`ContentBlock`] would be read by way of a buffer, and blocks of unknown types that
/// resemble a known one would come back as that one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireBlock<'a> {
    Text(Cow<'a, str>),
    Image {
        data: Cow<'a, str>,
        mime_type: Cow<'a, str>,
    },
    Audio {
        data: Cow<'a, str>,
        mime_type: Cow<'a, str>,
    },
    ResourceLink {
        uri: Cow<'a, str>,
        name: Cow<'a, str>,
    },
    /// As text, so that the levels of the message around it do not count towards the levels that serde_json reads.
    Resource(RawJson),
    Other(RawJson),
    /// A type that this version of the messages does not have, in the form of [`ContentBlock`].
    Serialized(RawJson),
}

impl<'a> From<&'a ContentBlock> for WireBlock<'a> {
    fn from(block: &'a ContentBlock) -> Self {
        match block {
            ContentBlock::Text { text } => Self::Text(text.into()),
            ContentBlock::Image { data, mime_type } => {
                Self::Image { data: data.into(), mime_type: mime_type.into() }
            }
            ContentBlock::Audio { data, mime_type } => {
                Self::Audio { data: data.into(), mime_type: mime_type.into() }
            }
            ContentBlock::ResourceLink { uri, name } => {
                Self::ResourceLink { uri: uri.into(), name: name.into() }
            }
            ContentBlock::Resource { resource } => Self::Resource(RawJson::from_value(resource)),
            ContentBlock::Other(value) => Self::Other(RawJson::from_value(value)),
            // The enum is non-exhaustive.
            block => Self::Serialized(
                RawJson::from_serialize(block)
                    .unwrap_or_else(|_| RawJson::from_value(&serde_json::Value::Null)),
            ),
        }
    }
}

impl From<WireBlock<'static>> for ContentBlock {
    fn from(wire: WireBlock<'static>) -> Self {
        match wire {
            WireBlock::Text(text) => Self::Text { text: text.into_owned() },
            WireBlock::Image { data, mime_type } => {
                Self::Image { data: data.into_owned(), mime_type: mime_type.into_owned() }
            }
            WireBlock::Audio { data, mime_type } => {
                Self::Audio { data: data.into_owned(), mime_type: mime_type.into_owned() }
            }
            WireBlock::ResourceLink { uri, name } => {
                Self::ResourceLink { uri: uri.into_owned(), name: name.into_owned() }
            }
            WireBlock::Resource(resource) => Self::Resource { resource: resource.to_value() },
            WireBlock::Other(value) => Self::Other(value.to_value()),
            WireBlock::Serialized(block) => block.read().unwrap_or_else(|_| Self::Other(block.to_value())),
        }
    }
}

impl<'a> From<&'a ToolOutput> for WireOutput<'a> {
    fn from(output: &'a ToolOutput) -> Self {
        let ToolOutput { content, structured, budget_exempt, input_required, raw, meta } = output;
        Self {
            content: content.iter().map(WireBlock::from).collect(),
            structured: structured.clone(),
            budget_exempt: *budget_exempt,
            input_required: *input_required,
            raw: raw.clone(),
            meta: Cow::Borrowed(meta),
        }
    }
}

impl From<WireOutput<'static>> for ToolOutput {
    fn from(wire: WireOutput<'static>) -> Self {
        let WireOutput { content, structured, budget_exempt, input_required, raw, meta } = wire;
        Self {
            content: content.into_iter().map(ContentBlock::from).collect(),
            structured,
            budget_exempt,
            input_required,
            raw,
            meta: meta.into_owned(),
        }
    }
}

//! What workers and gateways tell each other besides calls: announcements, lists of definitions, refusals.

use serde::{Deserialize, Serialize};
use toolyard_core::{ContentHash, RawJson};

/// A longer announcement is none of ours.
const MAX_ANNOUNCEMENT_BYTES: usize = 1 << 10;
/// Definitions that one process may offer, and their size.
const MAX_TOOLS: usize = 2_000;
const MAX_CATALOGUE_BYTES: usize = 16 << 20;
/// Begins a message that is not one of the call: those are JSON.
const REFUSAL: u8 = 0;

/// A process says that it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Announcement {
    pub(super) process: u64,
    /// The hash of what the process says when it is asked for its tools.
    pub(super) catalogue: ContentHash,
    /// Whether the process takes no more calls.
    #[serde(default)]
    pub(super) is_leaving: bool,
    /// For people only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// How many calls it executes at the same time at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) concurrency: Option<u32>,
    /// How many calls it executes now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) running_calls: Option<u32>,
}

impl Announcement {
    pub(super) fn encode(&self) -> Vec<u8> {
        // Numbers and texts are always JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// None if the message is malformed.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        (message.len() <= MAX_ANNOUNCEMENT_BYTES).then_some(())?;
        serde_json::from_slice(message).ok()
    }
}

/// The definitions of the tools that a process serves, in MCP's form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CatalogueMessage {
    pub(super) tools: Vec<RawJson>,
}

/// Why a list of definitions was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidCatalogue {
    /// A worker announced its tools in a form that this gateway cannot read.
    ///
    /// Remedy: run the same version of Toolyard in all gateways and workers.
    #[error("the list of tools is not the expected JSON")]
    Malformed,
    /// The definitions of the tools of a worker are too long together.
    ///
    /// Remedy: serve fewer tools in one group: `tools` or `without_tools` of its servers, or several groups.
    #[error("the list of tools has {0} bytes; at most {MAX_CATALOGUE_BYTES} are accepted")]
    TooLong(usize),
    /// A worker serves more tools than a gateway accepts of one group.
    ///
    /// Remedy: serve fewer tools in one group: `tools` or `without_tools` of its servers, or several groups.
    #[error("the list has {0} tools; at most {MAX_TOOLS} are accepted")]
    TooMany(usize),
}

impl CatalogueMessage {
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn decode(message: &[u8]) -> Result<Self, InvalidCatalogue> {
        if message.len() > MAX_CATALOGUE_BYTES {
            return Err(InvalidCatalogue::TooLong(message.len()));
        }
        let read: Self = serde_json::from_slice(message).map_err(|_| InvalidCatalogue::Malformed)?;
        if read.tools.len() > MAX_TOOLS {
            return Err(InvalidCatalogue::TooMany(read.tools.len()));
        }
        Ok(read)
    }
}

/// Why a process did not begin a call. Another process of the group may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerRefusal {
    /// It executes as many calls as it may.
    Busy,
    /// It is shutting down.
    Leaving,
}

impl WorkerRefusal {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut message = vec![REFUSAL];
        message.extend(serde_json::to_vec(&self).unwrap_or_default());
        message
    }

    /// None if the message is one of the call.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        match message.split_first() {
            Some((&REFUSAL, refusal)) => serde_json::from_slice(refusal).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_read_back() {
        let bare = format!(r#"{{"process":{},"catalogue":"{}"}}"#, u64::MAX, ContentHash::of("a"));
        let bare = Announcement::decode(bare.as_bytes()).unwrap();
        assert!(!bare.is_leaving && bare.name.is_none(), "workers of earlier versions say no more");
        let named = Announcement {
            is_leaving: true,
            name: Some("host:7".to_owned()),
            concurrency: Some(64),
            running_calls: Some(3),
            ..bare.clone()
        };
        for announcement in [bare, named] {
            assert_eq!(Announcement::decode(&announcement.encode()), Some(announcement));
        }
        let list = CatalogueMessage { tools: vec![RawJson::empty_object()] };
        assert_eq!(CatalogueMessage::decode(&list.encode()), Ok(list));
        for refusal in [WorkerRefusal::Busy, WorkerRefusal::Leaving] {
            assert_eq!(WorkerRefusal::decode(&refusal.encode()), Some(refusal));
        }
        assert_eq!(WorkerRefusal::decode(br#"{"success":{}}"#), None);
    }

    #[test]
    fn endless_lists_are_refused() {
        let many = CatalogueMessage { tools: vec![RawJson::empty_object(); MAX_TOOLS + 1] };
        assert_eq!(CatalogueMessage::decode(&many.encode()), Err(InvalidCatalogue::TooMany(MAX_TOOLS + 1)));
        let long = vec![b' '; MAX_CATALOGUE_BYTES + 1];
        assert!(matches!(CatalogueMessage::decode(&long), Err(InvalidCatalogue::TooLong(_))));
        assert_eq!(Announcement::decode(&vec![b' '; 2_000]), None);
    }

    proptest! {
        #[test]
        fn anything_else_is_refused_without_a_panic(bytes: Vec<u8>) {
            prop_assert_eq!(Announcement::decode(&bytes), None);
            prop_assert!(CatalogueMessage::decode(&bytes).is_err());
            let _ = WorkerRefusal::decode(&bytes);
        }
    }
}

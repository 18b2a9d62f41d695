//! What may be used of a server's tools, out of what it sent and what was approved: the shelf.

use std::collections::BTreeMap;

use toolyard_core::{ContentHash, ProtocolEra, RawJson, SourceId};

use super::{ConnectError, Offer, host::Host, server::Known};
use crate::{cache::Kept, config::McpServerConfig, shelf::Shelf};

impl Host {
    /// What may be used of a list that a server sent just now. It is remembered before anything of it serves.
    pub(super) async fn review(
        &self,
        config: &McpServerConfig,
        era: ProtocolEra,
        list: Vec<RawJson>,
    ) -> Result<Shelf, ConnectError> {
        let decision = self.cache.take_in(config, Some(era), list, now()).await;
        decision.map(Shelf::of).map_err(|error| ConnectError::Memory(error.to_string()))
    }

    /// Remembers what a server offers besides tools. A failure costs a start later, and nothing else.
    pub(super) async fn keep_offer(&self, config: &McpServerConfig, offer: &Offer) {
        let Ok(content) = RawJson::from_serialize(offer) else { return };
        if let Err(error) = self.cache.keep_content(config, content).await {
            tracing::warn!(server = %config.id, %error, "what it offers besides tools is not remembered");
        }
    }

    /// Approves tools as they were sent last; the shelf afterwards.
    pub(super) async fn approve(
        &self,
        config: &McpServerConfig,
        tools: &[(String, ContentHash)],
    ) -> Result<Shelf, String> {
        let approved = self.cache.approve(config, Some(tools), now()).await;
        approved.map(|known| Shelf::of(known.decision)).map_err(|error| error.to_string())
    }

    /// What is remembered of these servers, as far as they are still configured as they were: a server that is reached
    /// in another way is a server never seen.
    pub(super) async fn recall(
        &self,
        configs: &[McpServerConfig],
    ) -> Result<BTreeMap<SourceId, Known>, String> {
        let all = self.cache.shelves(configs).await.map_err(|error| error.to_string())?;
        let known = |Kept { era, shelf, content }| {
            // What cannot be read was written by another version.
            let offer = content.and_then(|content| content.read().ok()).unwrap_or_default();
            Known { era, shelf, offer }
        };
        Ok(all.into_iter().map(|(id, kept)| (id, known(kept))).collect())
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

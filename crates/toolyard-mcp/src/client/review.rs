//! What may be used of a server's tools, out of what it sent and what was approved: the shelf.

use std::collections::BTreeMap;

use toolyard_core::{ProtocolEra, RawJson, SourceId};

use super::{
    ConnectError,
    host::Host,
    server::Known,
    shelf::{InService, OutOfService, Quarantined, Shelf},
};
use crate::{config::McpServerConfig, definition::PinDecision};

impl Host {
    /// What may be used of a list that a server sent just now. It is remembered before anything of it serves.
    pub(super) async fn review(
        &self,
        config: &McpServerConfig,
        era: ProtocolEra,
        list: Vec<RawJson>,
    ) -> Result<Shelf, ConnectError> {
        let decision = self.cache.take_in(config, Some(era), list, now()).await;
        decision.map(shelf).map_err(|error| ConnectError::Memory(error.to_string()))
    }

    /// Approves tools as they were sent last; the shelf afterwards.
    pub(super) async fn approve(&self, config: &McpServerConfig, tools: &[String]) -> Result<Shelf, String> {
        let approved = self.cache.approve(config, Some(tools), now()).await;
        approved.map(|known| shelf(known.decision)).map_err(|error| error.to_string())
    }

    /// What is remembered of these servers, as far as they are still configured as they were: a server that is reached
    /// in another way is a server never seen.
    pub(super) async fn recall(
        &self,
        configs: &[McpServerConfig],
    ) -> Result<BTreeMap<SourceId, Known>, String> {
        let all = self.cache.recall_all(configs).await.map_err(|error| error.to_string())?;
        let known = all
            .into_iter()
            .map(|(id, known)| (id, Known { era: known.record.era, shelf: shelf(known.decision) }));
        Ok(known.collect())
    }
}

fn shelf(decision: PinDecision) -> Shelf {
    let in_service = decision.in_service.into_iter();
    let out_of_service = decision.blocked.into_iter();
    let quarantined = decision.quarantined.into_iter();
    Shelf {
        in_service: in_service
            .map(|tool| InService { spec: tool.spec, pin: tool.hash, notes: tool.notes })
            .collect(),
        out_of_service: out_of_service
            .map(|blocked| OutOfService {
                name: blocked.tool.spec.name.to_string(),
                reason: blocked.reason.to_string(),
                difference: blocked.difference,
            })
            .collect(),
        quarantined: quarantined
            .map(|tool| Quarantined { name: tool.name, reason: tool.reason.to_string() })
            .collect(),
        first_seen: decision.first_seen,
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

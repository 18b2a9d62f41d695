//! Compares the tools a server sent with what was approved, and remembers both.

use std::collections::BTreeMap;

use toolyard_core::{ProtocolEra, RawJson, Servers, SourceId};

use super::{
    ConnectError,
    host::Host,
    server::Known,
    shelf::{InService, Quarantined, Shelf},
};
use crate::{
    config::{HttpKind, McpServerConfig, TransportConfig},
    definition::{JudgeRules, judge_list},
};

impl Host {
    /// What may be used of a list that a server sent just now.
    pub(super) async fn review(
        &self,
        config: &McpServerConfig,
        era: ProtocolEra,
        list: &[RawJson],
    ) -> Result<Shelf, ConnectError> {
        let judged = judge_list(list, rules(config, era));
        let in_service = judged.usable.into_iter().map(|tool| InService {
            spec: tool.spec,
            pin: tool.hash,
            notes: tool.notes,
        });
        let quarantined = judged
            .quarantined
            .into_iter()
            .map(|tool| Quarantined { name: tool.name, reason: tool.reason.to_string() });
        Ok(Shelf { in_service: in_service.collect(), quarantined: quarantined.collect(), ..Shelf::default() })
    }
}

fn rules(config: &McpServerConfig, era: ProtocolEra) -> JudgeRules {
    let over_http = matches!(&config.transport, TransportConfig::Http { kind, .. } if *kind != HttpKind::Sse);
    JudgeRules { mirrored_headers: over_http && era == ProtocolEra::Modern }
}

/// What is remembered of these servers, as far as they are still configured as they were.
pub(super) async fn load(
    _memory: &dyn Servers,
    _configs: &[McpServerConfig],
) -> Result<BTreeMap<SourceId, Known>, String> {
    Ok(BTreeMap::new())
}

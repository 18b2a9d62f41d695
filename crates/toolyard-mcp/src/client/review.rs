//! Compares the tools a server sent with what was approved, and remembers both: the seeds' `cached_tools`.

use std::collections::BTreeMap;

use toolyard_core::{ProtocolEra, RawJson, ServerRecord, SourceId};

use super::{
    ConnectError,
    host::Host,
    server::Known,
    shelf::{InService, OutOfService, Quarantined, Shelf},
};
use crate::{
    config::{HttpKind, McpServerConfig, TransportConfig},
    definition::{FirstSight, JudgeRules, PinDecision, decide, judge_list},
};

impl Host {
    /// What may be used of a list that a server sent just now. It is remembered before anything of it serves.
    pub(super) async fn review(
        &self,
        config: &McpServerConfig,
        era: ProtocolEra,
        list: &[RawJson],
    ) -> Result<Shelf, ConnectError> {
        let decision = self.decision(config, era, list).await.map_err(ConnectError::Memory)?;
        for record in &decision.records {
            self.memory.put_definition(&config.id, record).await.map_err(ConnectError::Memory)?;
        }
        let record = ServerRecord {
            id: config.id.clone(),
            configuration: config.fingerprint(),
            era: Some(era),
            cached_tools: list.to_vec(),
            seen_at: now(),
        };
        self.memory.put_server(&record).await.map_err(ConnectError::Memory)?;
        Ok(shelf(decision))
    }

    /// Approves tools as they were sent last; the shelf afterwards.
    pub(super) async fn approve(
        &self,
        config: &McpServerConfig,
        era: ProtocolEra,
        tools: &[String],
    ) -> Result<Shelf, String> {
        let servers = self.memory.servers().await?;
        let list = servers.into_iter().find(|server| server.id == config.id);
        let list = list.map(|server| server.cached_tools).unwrap_or_default();
        let decision = self.decision(config, era, &list).await?;
        for record in decision.approval(Some(tools), now()).map_err(|error| error.to_string())? {
            self.memory.put_definition(&config.id, &record).await?;
        }
        Ok(shelf(self.decision(config, era, &list).await?))
    }

    async fn decision(
        &self,
        config: &McpServerConfig,
        era: ProtocolEra,
        list: &[RawJson],
    ) -> Result<PinDecision, String> {
        let history = self.memory.definitions(&config.id).await?;
        let first_sight = if config.strict { FirstSight::Ask } else { FirstSight::Trust };
        Ok(decide(&history, judge_list(list, rules(config, era)), first_sight, now()))
    }
}

fn rules(config: &McpServerConfig, era: ProtocolEra) -> JudgeRules {
    let over_http = matches!(&config.transport, TransportConfig::Http { kind, .. } if *kind != HttpKind::Sse);
    JudgeRules { mirrored_headers: over_http && era == ProtocolEra::Modern }
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

/// What is remembered of these servers, as far as they are still configured as they were: a server that is reached in
/// another way is a server never seen.
pub(super) async fn load(
    host: &Host,
    configs: &[McpServerConfig],
) -> Result<BTreeMap<SourceId, Known>, String> {
    let mut all = BTreeMap::new();
    if configs.is_empty() {
        return Ok(all);
    }
    let mut records: BTreeMap<SourceId, ServerRecord> =
        host.memory.servers().await?.into_iter().map(|record| (record.id.clone(), record)).collect();
    for config in configs {
        let Some(record) = records.remove(&config.id) else { continue };
        if record.configuration != config.fingerprint() {
            continue;
        }
        let era = record.era.unwrap_or(ProtocolEra::Legacy);
        let shelf = shelf(host.decision(config, era, &record.cached_tools).await?);
        all.insert(config.id.clone(), Known { era: record.era, shelf });
    }
    Ok(all)
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

//! Counts the use of language models against quotas.

use toolyard_core::{CallerIdentity, ModelUse, QuotaExceeded, QuotaSubject};
use toolyard_model::{ModelError, ModelReply, Usage};

use super::{Agent, AgentParts};

impl Agent {
    /// Fails if the tokens or the money of this caller or of this agent are used up: a run could not call its model.
    pub async fn admit_model_use(&self, identity: Option<&CallerIdentity>) -> Result<(), Box<QuotaExceeded>> {
        self.parts.admit_model_use(identity).await
    }
}

impl AgentParts {
    pub(crate) async fn admit_model_use(
        &self,
        identity: Option<&CallerIdentity>,
    ) -> Result<(), Box<QuotaExceeded>> {
        match self.hub.quota() {
            Some(quota) => quota.admit_model_use(self.quota_subject(identity)).await,
            None => Ok(()),
        }
    }

    /// Counts what a model call used, also if it failed.
    pub(crate) async fn charge_model_use(
        &self,
        identity: Option<&CallerIdentity>,
        reply: &Result<ModelReply, ModelError>,
    ) {
        let Some(quota) = self.hub.quota() else { return };
        let usage = self.with_cost(match reply {
            Ok(reply) => reply.usage,
            Err(error) => error.usage(),
        });
        let used =
            ModelUse { tokens: usage.input.saturating_add(usage.output), cost_micros: usage.cost_micros };
        if used != ModelUse::default() {
            quota.charge_model_use(self.quota_subject(identity), used).await;
        }
    }

    /// Computes the cost if the provider did not report it.
    pub(crate) fn with_cost(&self, usage: Usage) -> Usage {
        match usage.cost_micros {
            0 => Usage { cost_micros: self.model.cost(&usage).unwrap_or_default(), ..usage },
            _ => usage,
        }
    }

    fn quota_subject<'a>(&'a self, identity: Option<&'a CallerIdentity>) -> QuotaSubject<'a> {
        QuotaSubject { identity, agent: Some(&self.config.name) }
    }
}

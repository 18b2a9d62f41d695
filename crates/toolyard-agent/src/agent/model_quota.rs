//! Counts the use of language models against quotas.

use toolyard_core::{CallerIdentity, ModelUse, QuotaExceeded, QuotaSubject};
use toolyard_model::{ModelError, ModelReply, ModelRequest, Usage};

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

    fn model_use(&self, usage: Usage) -> ModelUse {
        let usage = self.with_cost(usage);
        ModelUse { tokens: usage.input.saturating_add(usage.output), cost_micros: usage.cost_micros }
    }

    /// Counts the tokens of a reply whose server did not report them.
    fn count_tokens(&self, request: &ModelRequest, reply: &mut ModelReply) {
        if reply.usage.input == 0 && reply.usage.output == 0 {
            let count = |text: &str| u64::try_from(self.counter.count(text)).unwrap_or(u64::MAX);
            let input = request.messages.iter().map(|message| count(&message.text)).sum();
            let calls: u64 = reply.calls.iter().map(|call| count(&call.arguments)).sum();
            let output = count(&reply.text).saturating_add(count(&reply.reasoning)).saturating_add(calls);
            reply.usage = Usage { input, output, ..reply.usage };
        }
    }
}

/// A reply that is being received. If it is dropped before [`Self::finish`], such as by a cancelled run, what was received so far
/// is counted, because it was paid for.
pub(crate) struct UncountedReply<'a> {
    pub(crate) reply: ModelReply,
    parts: &'a AgentParts,
    identity: Option<&'a CallerIdentity>,
    request: &'a ModelRequest,
    is_counted: bool,
}

impl<'a> UncountedReply<'a> {
    pub(crate) fn new(
        parts: &'a AgentParts,
        identity: Option<&'a CallerIdentity>,
        request: &'a ModelRequest,
    ) -> Self {
        Self { reply: ModelReply::default(), parts, identity, request, is_counted: false }
    }

    /// Counts the whole reply, or what a failed call used; returns the reply with its usage.
    pub(crate) async fn finish(mut self, received: Result<(), ModelError>) -> Result<ModelReply, ModelError> {
        let mut reply = std::mem::take(&mut self.reply);
        self.is_counted = true;
        let reply = received.map(|()| {
            self.parts.count_tokens(self.request, &mut reply);
            reply
        });
        if let Some(quota) = self.parts.hub.quota() {
            let usage = reply.as_ref().map_or_else(ModelError::usage, |reply| reply.usage);
            let used = self.parts.model_use(usage);
            if used != ModelUse::default() {
                quota.charge_model_use(self.parts.quota_subject(self.identity), used).await;
            }
        }
        reply
    }
}

impl Drop for UncountedReply<'_> {
    fn drop(&mut self) {
        if self.is_counted {
            return;
        }
        if let Some(quota) = self.parts.hub.quota() {
            self.parts.count_tokens(self.request, &mut self.reply);
            let used = self.parts.model_use(self.reply.usage);
            // Counted at once; the quotas tell the store on their own.
            drop(quota.charge_model_use(self.parts.quota_subject(self.identity), used));
        }
    }
}

//! Counts calls against quotas, after they are authorized and before anything is sent.

use std::sync::Arc;

use toolyard_core::{CallQuota, QuotaCall, QuotaPermit, QuotaSubject, QuotaTool, ToolError};

use crate::{execution::attempt::Call, hub::ToolHub, registry::candidate::ToolCandidate};

fn quota_tool(candidate: &Arc<ToolCandidate>) -> QuotaTool<'_> {
    QuotaTool { name: &candidate.name, source: candidate.source_id() }
}

impl ToolHub {
    /// Takes the call from all quotas that are about it; the permit is held until the call has ended. A call that may go to
    /// several equivalent tools counts for each of them.
    pub(crate) async fn take_quota(
        &self,
        call: &Call<'_>,
        candidates: &[Arc<ToolCandidate>],
    ) -> Result<QuotaPermit, ToolError> {
        match self.quota() {
            None => Ok(QuotaPermit::default()),
            // Boxed, so that calls without quotas do not carry the state of waiting for one.
            Some(quota) => Box::pin(take(&*quota, call, candidates)).await,
        }
    }
}

async fn take(
    quota: &dyn CallQuota,
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
) -> Result<QuotaPermit, ToolError> {
    let subject = QuotaSubject { identity: call.identity.map(|identity| &**identity), agent: call.agent };
    let admission = match candidates {
        [only] => quota.take_call(&QuotaCall { subject, tools: &[quota_tool(only)] }),
        several => {
            let tools: Vec<QuotaTool<'_>> = several.iter().map(quota_tool).collect();
            quota.take_call(&QuotaCall { subject, tools: &tools })
        }
    };
    admission.await.map_err(|exceeded| {
        call.log_decision("quota", None, || (exceeded.quota.to_string(), exceeded.to_string()));
        let error = exceeded.to_tool_error().on_tool(&call.request.tool_name);
        match candidates {
            [only] => error.on_source(only.source_id()),
            _ => error,
        }
    })
}

//! [`ToolHub`]: registers sources and executes calls, by tool name or by capability.

use std::{
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLockReadGuard};
use tokio::{sync::watch, time::Instant};
use toolyard_core::{
    CallPolicy, CallQuota, Capability, ErrorKind, PastRequest, PastRequests, QuarantineNotice, RawJson,
    Results, SourceId, SourceInfo, SourceKind, SourceTools, SuccessRate, Synthesizer, Tool, ToolCallRequest,
    ToolError, ToolOutput, telemetry::Telemetry,
};
use toolyard_search::{MAX_PAST_REQUESTS, SearchIndex};

use crate::{
    execution::{
        argument_check::{CheckedCandidates, check_arguments},
        attempt::Call,
        audit::audit_record,
        authorize::remove_denied,
        dispatch::{DispatchOutcome, dispatch},
        failure::CallFailure,
        operation::CallOperation,
        options::CallOptions,
        share_key::share_key,
        validate::parse_arguments,
    },
    hub_config::{HubConfig, HubSettings},
    output::{
        budget::{Budget, OutputLimits},
        structured::truncate_structured,
        truncate::truncate_output,
    },
    registry::{
        candidate::ToolCandidate,
        registration::Registration,
        snapshot::{Registry, Snapshot},
    },
    resilience::retry::RetryPolicy,
    routing::{
        capability_selection::{Selection, SelectionError, select},
        explain::{ambiguous_capability, describe_route, describe_skipped, other_sources_hint},
        order::{describe_order, order},
        route::{RouteCase, route_within},
    },
    search_index::LazySearchIndex,
    source_status::SourceStatus,
};

/// Upper bound on any call timeout, so that adding it to an `Instant` cannot overflow.
const MAX_CALL_TIMEOUT: Duration = Duration::from_hours(365 * 24);

/// Registry of all tools and executor of every call.
#[derive(Debug)]
pub struct ToolHub {
    registry: Registry,
    pub(crate) search: LazySearchIndex,
    config: HubConfig,
    call_settings: ArcSwap<CallSettings>,
    policy: ArcSwap<Option<Arc<dyn CallPolicy>>>,
    quota: ArcSwap<Option<Arc<dyn CallQuota>>>,
}

/// Settings of calls that can be replaced while the hub runs.
#[derive(Debug)]
struct CallSettings {
    limits: OutputLimits,
    retry: RetryPolicy,
    synthesizer: Option<Arc<dyn Synthesizer>>,
}

impl Default for ToolHub {
    fn default() -> Self {
        Self::new(HubConfig::default())
    }
}

impl ToolHub {
    /// Creates a hub without tools.
    pub fn new(config: HubConfig) -> Self {
        let registry = Registry::new(config.rules.clone(), config.capabilities.clone(), config.breaker);
        let search = LazySearchIndex::new(config.embedder.clone());
        let (limits, retry, synthesizer) = (config.limits, config.retry, config.synthesizer.clone());
        let call_settings = ArcSwap::from_pointee(CallSettings { limits, retry, synthesizer });
        let policy = ArcSwap::from_pointee(config.policy.clone());
        let quota = ArcSwap::from_pointee(config.quota.clone());
        Self { registry, search, config, call_settings, policy, quota }
    }

    /// Replaces the settings while the hub runs. Calls that are being executed keep the settings they began with.
    pub fn reconfigure(&self, settings: HubSettings) {
        let HubSettings { rules, capabilities, limits, retry, synthesizer } = settings;
        self.call_settings.store(Arc::new(CallSettings { limits, retry, synthesizer }));
        if self.registry.reconfigure(rules, capabilities) {
            for entry in self.registry.snapshot().sources() {
                self.search.mark_changed(&entry.source.info.id);
            }
        }
    }

    /// Replaces the policy while the hub runs; clients learn of it with the next change of tools ([`Self::reconfigure`]).
    pub fn set_policy(&self, policy: Option<Arc<dyn CallPolicy>>) {
        self.policy.store(Arc::new(policy));
    }

    /// Whether a policy decides about calls.
    pub fn has_policy(&self) -> bool {
        self.policy.load().is_some()
    }

    /// Decides about calls, besides the `deny` rules.
    pub fn policy(&self) -> Option<Arc<dyn CallPolicy>> {
        Option::clone(&self.policy.load())
    }

    /// Replaces the quotas while the hub runs. Calls that are being executed count against the previous ones.
    pub fn set_quota(&self, quota: Option<Arc<dyn CallQuota>>) {
        self.quota.store(Arc::new(quota));
    }

    /// Limits calls and the use of language models; `None` limits nothing.
    pub fn quota(&self) -> Option<Arc<dyn CallQuota>> {
        Option::clone(&self.quota.load())
    }

    /// Registers a source with its tools, or replaces its tools. Running calls are not affected.
    pub fn register(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Registration {
        self.register_with_quarantined(source, tools, Vec::new())
    }

    /// Like [`Self::register`], for a source that also offers tools which await approval: calls of these are refused as
    /// such.
    pub fn register_with_quarantined(
        &self,
        source: SourceInfo,
        tools: Vec<Arc<dyn Tool>>,
        quarantined: Vec<QuarantineNotice>,
    ) -> Registration {
        self.register_all(vec![SourceTools { source, tools, quarantined }]).pop().unwrap_or_default()
    }

    /// Registers many sources with different ids, as [`Self::register_with_quarantined`] would in this order, but in one change.
    pub fn register_all(&self, sources: Vec<SourceTools>) -> Vec<Registration> {
        let ids: Vec<SourceId> = sources.iter().map(|tools| tools.source.id.clone()).collect();
        let registrations = self.registry.replace_all(sources);
        for (id, registration) in ids.iter().zip(&registrations) {
            self.search.mark_changed(id);
            for (tool, reason) in &registration.rejected {
                tracing::warn!(source = %id, %tool, reason, "tool rejected at registration");
            }
            for tool in &registration.collisions {
                tracing::info!(source = %id, %tool, "tool name is shared by several sources");
            }
        }
        registrations
    }

    /// Removes a source; returns whether it existed.
    pub fn remove(&self, source: &SourceId) -> bool {
        let removed = self.registry.remove(source);
        self.search.mark_changed(source);
        removed
    }

    /// Closes the circuit breaker of a source that was started or connected again: the next call need not wait for a probe.
    pub fn report_ready(&self, source: &SourceId) {
        self.registry.report_ready(source);
    }

    /// The capabilities that a name and a description mention, by the built-in table and the operator's rows.
    pub fn mentioned_capabilities(&self, name: &str, description: &str) -> Vec<Capability> {
        self.registry.mentioned_capabilities(name, description)
    }

    /// How often the calls of a tool of this source succeeded; none if that is not recorded.
    pub fn success_rate(&self, tool: &str, source: &SourceId) -> Option<SuccessRate> {
        self.config.history.success_rate(tool, source)
    }

    pub(crate) fn past_requests(&self) -> Option<&Arc<dyn PastRequests>> {
        self.config.past_requests.as_ref()
    }

    /// The search index, up to date with all registered tools.
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, SearchIndex> {
        let past = || {
            self.config.past_requests.as_ref().map(|past| past.recent(MAX_PAST_REQUESTS)).unwrap_or_default()
        };
        self.search.current(|| self.snapshot(), past)
    }

    /// The number of tools in the search index, which the next search updates.
    pub fn indexed_tools(&self) -> usize {
        self.search.len()
    }

    /// The current snapshot of all tools.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.registry.snapshot())
    }

    /// Whether this snapshot is still the current one.
    pub fn is_current(&self, snapshot: &Arc<Snapshot>) -> bool {
        Arc::ptr_eq(&self.registry.snapshot(), snapshot)
    }

    /// Notifies of tool changes from now on; several changes may be coalesced. The value counts the changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.registry.changes()
    }

    /// The priority of sources of this kind; smaller is preferred.
    pub fn priority(&self, kind: SourceKind) -> u8 {
        self.registry.priority(kind)
    }

    /// Receives the calls that have ended. Agents that use the hub report their runs to it, too.
    pub fn telemetry(&self) -> Option<&Arc<dyn Telemetry>> {
        self.config.telemetry.as_ref()
    }

    /// Stores whole results whose output was truncated.
    pub fn results(&self) -> &Arc<dyn Results> {
        &self.config.results
    }

    /// Every tool that can be called, sorted by name (`discover_available_tools` in the specification). Denied tools are left
    /// out. Tools that share a name and are not equivalent are called as [`Snapshot::callable_name`] says.
    pub fn tools(&self) -> Vec<Arc<ToolCandidate>> {
        self.registry.snapshot().callable()
    }

    /// All sources with their status.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let now = Instant::now();
        self.registry.snapshot().sources().iter().map(|entry| SourceStatus::of(entry, now)).collect()
    }

    /// Executes one call: routes it, validates the arguments, calls the tool and truncates the output to its budget.
    pub async fn execute(
        &self,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        self.admit(request)?;
        let call = self.new_call(request, options);
        let audit_guard = AuditGuard { hub: self, call: &call, options, is_recorded: false };
        let outcome = self.dispatch_by_name(&call, options).await.map_err(|failure| failure.error);
        self.withhold_until_recorded(request, audit_guard.record(outcome)).await
    }

    /// Executes a call for which only a capability is known. Trusted read-only tools whose schema accepts the arguments
    /// may be called together. Any other tool is called only if it is the single match; several matches are refused.
    pub async fn execute_by_capability(
        &self,
        capability: &Capability,
        arguments: RawJson,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let request = ToolCallRequest::new(capability.as_str(), arguments);
        self.admit(&request)?;
        let call = self.new_call(&request, options);
        let audit_guard = AuditGuard { hub: self, call: &call, options, is_recorded: false };
        let outcome = self.dispatch_by_capability(&call, capability, options, |_| true).await;
        let outcome = audit_guard.record(outcome.map_err(|failure| failure.error));
        self.withhold_until_recorded(&request, outcome).await
    }

    /// Executes a call by name and, if it certainly had no effect when it failed, by capability. The
    /// specification calls this routing by name, then by capability. Only trusted read-only tools are called as fallback; the
    /// output names the tool that failed.
    pub async fn execute_or_by_capability(
        &self,
        request: &ToolCallRequest,
        capability: &Capability,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        self.admit(request)?;
        let call = self.new_call(request, options);
        let audit_guard = AuditGuard { hub: self, call: &call, options, is_recorded: false };
        let outcome = self.dispatch_by_name(&call, options).await;
        let outcome = audit_guard.record(self.or_by_capability(&call, capability, options, outcome).await);
        self.withhold_until_recorded(request, outcome).await
    }

    /// The result of a call by name, or of the capability fallback if the call failed without any effect.
    pub(crate) async fn or_by_capability(
        &self,
        call: &Call<'_>,
        capability: &Capability,
        options: &CallOptions,
        outcome: Result<ToolOutput, CallFailure>,
    ) -> Result<ToolOutput, ToolError> {
        let request = call.request;
        let failure = match outcome {
            Ok(output) => return Ok(output),
            Err(failure) => failure,
        };
        if !allows_capability_fallback(request, &failure) {
            return Err(failure.error);
        }
        call.log_decision("route", None, || {
            let reason = failure.error.message();
            (request.tool_name.clone(), format!("{reason}: trying the capability `{capability}`"))
        });
        let is_safe_fallback = |tool: &ToolCandidate| {
            tool.source.info.trusted && tool.hints.read_only && *tool.name != *request.tool_name
        };
        match self.dispatch_by_capability(call, capability, options, is_safe_fallback).await {
            Ok(mut output) => {
                output.meta.failed.splice(0..0, failure.messages);
                Ok(output)
            }
            // The original failure is more useful to the caller than the missing fallback.
            Err(_) => Err(failure.error),
        }
    }

    /// Routes and executes a call by name, without recording it.
    async fn dispatch_by_name(
        &self,
        call: &Call<'_>,
        options: &CallOptions,
    ) -> Result<ToolOutput, CallFailure> {
        let prepared = self.prepare(call)?;
        let _permit = self.take_quota(call, &prepared.candidates).await?;
        self.execute_prepared(call, &prepared, options).await
    }

    /// Finds and orders the candidates of a call by name whose schema accepts the arguments.
    pub(crate) fn prepare(&self, call: &Call<'_>) -> Result<PreparedCall, CallFailure> {
        let snapshot = self.registry.snapshot();
        let mut route = route_within(&snapshot, call.request, call.profile)?;
        remove_denied(self.policy.load().as_deref(), call, &mut route.candidates)?;
        let CheckedCandidates { mut accepting, rejecting, first_error } =
            check_arguments(std::mem::take(&mut route.candidates), &call.request.arguments);
        call.log_decision("route", None, || {
            let detail = describe_route(route.case, &accepting, &rejecting, describe_skipped(&route));
            (call.request.tool_name.clone(), detail)
        });
        if let (Some(error), true) = (first_error, accepting.is_empty()) {
            return Err(error.into());
        }
        let history = &*self.config.history;
        order(&mut accepting, history);
        call.log_decision("order", None, || {
            (call.request.tool_name.clone(), describe_order(&accepting, Some(history)))
        });
        // With a policy, the caller may not know of these sources.
        let other_sources_hint = match self.has_policy() {
            true => None,
            false => other_sources_hint(&snapshot, &route, &call.request.tool_name),
        };
        Ok(PreparedCall { candidates: accepting, other_sources_hint })
    }

    /// Executes a prepared call and truncates its output.
    pub(crate) async fn execute_prepared(
        &self,
        call: &Call<'_>,
        prepared: &PreparedCall,
        options: &CallOptions,
    ) -> Result<ToolOutput, CallFailure> {
        let with_hint = |failure: CallFailure| match &prepared.other_sources_hint {
            None => failure,
            Some(hint) => failure.with_hint(hint.clone()),
        };
        let synthesizer = self.synthesizer(options);
        let dispatched =
            dispatch(call, &prepared.candidates, None, synthesizer.as_ref()).await.map_err(with_hint)?;
        Ok(self.truncate(call, dispatched, options).await)
    }

    /// Selects among the allowed tools with a capability and executes the call, without recording it.
    async fn dispatch_by_capability(
        &self,
        call: &Call<'_>,
        capability: &Capability,
        options: &CallOptions,
        is_allowed: impl Fn(&ToolCandidate) -> bool,
    ) -> Result<ToolOutput, CallFailure> {
        let mut found = self.registry.snapshot().find_by_capability(capability.as_str());
        found.retain(|tool| is_allowed(tool) && call.profile.is_none_or(|profile| profile.offers(tool)));
        remove_denied(self.policy.load().as_deref(), call, &mut found)?;
        let arguments = parse_arguments(&call.request.arguments)?;
        let Selection { candidates, rejecting } =
            select(&found, &arguments).map_err(|error| match error {
                SelectionError::NoTool => self.unknown_capability(capability),
                SelectionError::InvalidArguments(error) => error,
                SelectionError::Several(several) => ambiguous_capability(capability, &several),
            })?;
        let subject = || capability.to_string();
        call.log_decision("route", None, || {
            (subject(), describe_route(RouteCase::Automatic, &candidates, &rejecting, None))
        });
        call.log_decision("order", None, || (subject(), describe_order(&candidates, None)));
        let _permit = self.take_quota(call, &candidates).await?;
        let synthesizer = self.synthesizer(options);
        let dispatched = dispatch(call, &candidates, Some(capability), synthesizer.as_ref()).await?;
        Ok(self.truncate(call, dispatched, options).await)
    }

    /// The model that combines the outputs of a call: that of the caller, else that of the hub; none if the hub has none.
    fn synthesizer(&self, options: &CallOptions) -> Option<Arc<dyn Synthesizer>> {
        let default = self.call_settings.load().synthesizer.clone()?;
        Some(options.synthesizer.clone().unwrap_or(default))
    }

    async fn truncate(
        &self,
        call: &Call<'_>,
        dispatched: DispatchOutcome,
        options: &CallOptions,
    ) -> ToolOutput {
        let limit = match options.budget {
            Budget::Unlimited => usize::MAX,
            Budget::ByKind => self.call_settings.load().limits.for_kind(dispatched.kind),
            Budget::Characters(limit) => limit,
        };
        let structured = dispatched.output.structured.clone().filter(|_| options.keep_structured_valid);
        let schema = dispatched.output_schema.clone();
        let mut output = truncate_output(call, dispatched, limit, &*self.config.results).await;
        if let (Some(structured), Some(schema), Some(_)) = (structured, schema, &output.meta.truncation) {
            let shown = truncate_structured(&structured, limit, &schema);
            output.meta.structured_truncated = shown != structured;
            output.structured = Some(shown);
        }
        output
    }

    fn unknown_capability(&self, capability: &Capability) -> ToolError {
        let known = self.registry.snapshot().capabilities();
        let names: Vec<&str> = known.iter().map(Capability::as_str).collect();
        ToolError::new(ErrorKind::UnknownCapability, format!("no tool has the capability `{capability}`"))
            .with_hint(format!("known capabilities: {}", names.join(", ")))
    }

    /// Refuses a call if the audit log must be complete and cannot keep the call's record.
    pub(crate) fn admit(&self, request: &ToolCallRequest) -> Result<(), ToolError> {
        let Some(Err(error)) = self.config.audit.as_ref().map(|audit| audit.admit()) else { return Ok(()) };
        Err(ToolError::new(ErrorKind::AuditUnavailable, error.to_string())
            .on_tool(&request.tool_name)
            .with_hint("nothing was called; try again once the store can be written"))
    }

    /// Records a call in the audit log that is refused before a tool is selected for it; returns the error.
    pub fn refuse(&self, request: &ToolCallRequest, options: &CallOptions, error: ToolError) -> ToolError {
        if self.config.audit.is_some() || self.config.telemetry.is_some() {
            let options = CallOptions { user_request: None, ..options.clone() };
            let call = self.new_call(request, &options);
            // Returns the error unchanged.
            let _ = self.record(&call, &options, Err(error.clone()));
        }
        error
    }

    /// Records the call in the audit log, whatever its result, and, if it succeeded, the user's request for search.
    pub(crate) fn record(
        &self,
        call: &Call<'_>,
        options: &CallOptions,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        if let Some(audit) = &self.config.audit {
            audit.record(audit_record(call, &outcome));
        }
        if let Some(operation) = &call.operation {
            operation.end(call.request, call.attempts(), &outcome);
        }
        if let (Ok(_), Some(request)) = (&outcome, &options.user_request) {
            self.record_past_request(call, request);
        }
        outcome
    }

    /// Withholds a result until the record of the call is durable, if the audit log must be complete: an answer that a client has
    /// must not be missing from the log after a crash.
    pub(crate) async fn withhold_until_recorded(
        &self,
        request: &ToolCallRequest,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let Some(kept) = self.config.audit.as_ref().and_then(|audit| audit.wait_until_durable()) else {
            return outcome;
        };
        let Err(error) = kept.await else { return outcome };
        if outcome.as_ref().is_err_and(ToolError::had_no_effect) {
            return outcome;
        }
        let message =
            format!("the call was made and may have had an effect; its result is withheld because {error}");
        Err(ToolError::new(ErrorKind::OutcomeUnknown, message)
            .with_retryable(false)
            .on_tool(&request.tool_name)
            .with_hint("find out what the call changed before it is made again"))
    }

    /// Stores the user's request with the tools that succeeded for it, for search.
    fn record_past_request(&self, call: &Call<'_>, request: &str) {
        let Some(past_requests) = &self.config.past_requests else { return };
        let Some(succeeded) = &call.succeeded_tools else { return };
        let succeeded = succeeded.lock();
        for (tool, source) in succeeded.iter() {
            if let Some(past) = PastRequest::new(call.data_owner(), &**tool, source.clone(), request) {
                self.search.add_past_request(&past);
                past_requests.record(past);
            }
        }
    }

    pub(crate) fn new_call<'a>(&'a self, request: &'a ToolCallRequest, options: &'a CallOptions) -> Call<'a> {
        // If there is a caller, progress of the tool moves the deadline by this much.
        let idle_timeout = options.timeout.min(MAX_CALL_TIMEOUT);
        let telemetry = self.config.telemetry.as_ref();
        let identity = options.effective_identity();
        Call {
            request,
            deadline: Instant::now() + idle_timeout,
            idle_timeout,
            retry: self.call_settings.load().retry,
            history: &*self.config.history,
            decision_log: options.decision_log.as_deref(),
            pending_effect: options.pending_effect.as_deref(),
            caller: options.caller.as_ref(),
            caller_name: &options.caller_name,
            profile: options.profile.as_deref(),
            agent: options.agent.as_deref(),
            identity,
            share_key: share_key(identity.map(AsRef::as_ref), &options.caller_name),
            idempotency_key: None,
            attempts: AtomicU32::new(0),
            telemetry,
            operation: telemetry.map(|telemetry| CallOperation::start(telemetry, request, options)),
            parent: options.span,
            succeeded_tools: options.user_request.is_some().then(Mutex::default),
        }
    }
}

/// Records a call in the audit log even if its future is dropped before it finishes.
pub(crate) struct AuditGuard<'a> {
    pub(crate) hub: &'a ToolHub,
    pub(crate) call: &'a Call<'a>,
    pub(crate) options: &'a CallOptions,
    pub(crate) is_recorded: bool,
}

impl AuditGuard<'_> {
    pub(crate) fn record(mut self, outcome: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
        self.is_recorded = true;
        self.hub.record(self.call, self.options, outcome)
    }
}

impl Drop for AuditGuard<'_> {
    fn drop(&mut self) {
        if self.is_recorded {
            return;
        }
        if let Some(operation) = &self.call.operation {
            operation.cancel(self.call.attempts());
        }
        let (kind, message) = match self.call.attempts() {
            0 => (ErrorKind::Unavailable, "the call was cancelled before a tool was called"),
            // The tool may have received the call, but no caller waits for its response any more.
            _ => (ErrorKind::ResponseLost, "the call was cancelled before the tool responded"),
        };
        // Only the audit record matters here.
        let _ = self.hub.record(self.call, self.options, Err(ToolError::new(kind, message)));
    }
}

/// Ordered candidates of a call, and a hint about other sources for its error.
pub(crate) struct PreparedCall {
    pub(crate) candidates: Vec<Arc<ToolCandidate>>,
    other_sources_hint: Option<String>,
}

/// The capability fallback is not used if the caller named a source, the call was refused, or it may have had an effect.
/// `native` names no source: it only prefers native tools.
pub(crate) fn allows_capability_fallback(request: &ToolCallRequest, failure: &CallFailure) -> bool {
    let names_source = request.source.as_deref().is_some_and(|source| !SourceId::is_native_hint(source));
    // A lost response of a call that is not safe to repeat arrives here as an unknown outcome.
    let is_final = matches!(
        failure.error.kind(),
        ErrorKind::OutcomeUnknown
            | ErrorKind::Refused
            | ErrorKind::Quarantined
            | ErrorKind::QuotaExceeded
            | ErrorKind::SignInRequired
            | ErrorKind::SessionLost
    );
    failure.had_no_effect && !names_source && !is_final
}

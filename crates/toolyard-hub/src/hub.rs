//! The hub: registers sources, and carries out one call from its name or capability to the answer that is shown.

use std::{
    sync::{Arc, Mutex, PoisonError, RwLockReadGuard, atomic::AtomicU32},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};
use toolyard_core::{
    Audit, Capability, CapabilityTable, ErrorKind, History, PastRequest, PastRequests, RawJson, Results,
    SourceId, SourceInfo, Synthesizer, Tool, ToolCallRequest, ToolError, ToolOutput,
};

use crate::{
    attempt::Call,
    audit::audit_record,
    breaker::{BreakerSettings, BreakerState},
    budget::{Budget, Limits},
    candidate::ToolCandidate,
    capability_pick::{NotPicked, Picked, pick},
    execution::{Asked, ask},
    explain::{name_one, not_asked, passed_over, route_words},
    failure::Failed,
    fitted::fitted,
    history::RecentSuccess,
    options::CallOptions,
    order::{order, order_words},
    registry::{Registration, Registry, Snapshot, SourceEntry},
    results::MemoryResults,
    retry::RetryPolicy,
    router::{RouteCase, route_within},
    rules::RoutingRules,
    search::{
        LiveIndex, MOST_PAST, SearchIndex,
        lexicon::{Lexicon, Lexicons},
    },
    show::show,
    validate::read,
};

/// No call takes longer, whatever its options say: an instant that far away can still be counted.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// Everything a hub is made of, as plain data and the few things that are plugged in.
#[derive(Clone)]
pub struct HubConfig {
    /// The operator's word on routing.
    pub rules: RoutingRules,
    /// Keywords and the capabilities they stand for.
    pub capabilities: CapabilityTable,
    /// How much of an answer is shown.
    pub limits: Limits,
    /// How failed calls are repeated where that is safe.
    pub retry: RetryPolicy,
    /// When a failing source is left alone.
    pub breaker: BreakerSettings,
    /// What is remembered of past calls.
    pub history: Arc<dyn History>,
    /// Where whole results are kept.
    pub results: Arc<dyn Results>,
    /// The model that puts several answers together, if there is one.
    pub synthesizer: Option<Arc<dyn Synthesizer>>,
    /// Where every call is recorded, if anywhere.
    pub audit: Option<Arc<dyn Audit>>,
    /// What words of other languages mean, for searching.
    pub lexicon: Arc<dyn Lexicon>,
    /// A local model that adds what a request means, for searching.
    #[cfg(feature = "embedding")]
    pub model: Option<Arc<crate::search::embedding::EmbeddingModel>>,
    /// Where it is remembered what tools were used for, if anywhere.
    pub past_requests: Option<Arc<dyn PastRequests>>,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            rules: RoutingRules::default(),
            capabilities: CapabilityTable::built_in().clone(),
            limits: Limits::default(),
            retry: RetryPolicy::default(),
            breaker: BreakerSettings::default(),
            history: Arc::new(RecentSuccess::default()),
            results: Arc::new(MemoryResults::default()),
            synthesizer: None,
            audit: None,
            lexicon: Arc::new(Lexicons::built_in()),
            #[cfg(feature = "embedding")]
            model: None,
            past_requests: None,
        }
    }
}

impl std::fmt::Debug for HubConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubConfig")
            .field("rules", &self.rules)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A source as it can be seen from outside.
#[derive(Debug, Clone)]
pub struct SourceStatus {
    /// What was said at registration.
    pub info: SourceInfo,
    /// Its tools.
    pub tools: Vec<Arc<ToolCandidate>>,
    /// Whether it is left alone at the moment. Native tools have breakers of their own: of the native source, this is
    /// the state of whichever is worst.
    pub breaker: BreakerState,
    /// The native tools whose own breaker lets not every call pass.
    pub open: Vec<(Arc<str>, BreakerState)>,
}

impl SourceStatus {
    fn of(entry: &SourceEntry, now: Instant) -> Self {
        let shared = &entry.source.state.shared;
        let own = entry.tools.iter().filter(|tool| !Arc::ptr_eq(&tool.health, shared));
        let open: Vec<_> = own
            .map(|tool| (Arc::clone(&tool.name), tool.health.breaker.state(now)))
            .filter(|(_, state)| *state != BreakerState::Closed)
            .collect();
        let breaker = open.iter().fold(shared.breaker.state(now), |worst, (_, state)| worst.or_worse(*state));
        Self { info: entry.source.info.clone(), tools: entry.tools.to_vec(), breaker, open }
    }
}

/// One registry of all tools, and the way every call takes.
#[derive(Debug)]
pub struct ToolHub {
    registry: Registry,
    search: LiveIndex,
    config: HubConfig,
}

impl Default for ToolHub {
    fn default() -> Self {
        Self::new(HubConfig::default())
    }
}

impl ToolHub {
    /// A hub without tools.
    pub fn new(config: HubConfig) -> Self {
        let registry = Registry::new(config.rules.clone(), config.capabilities.clone(), config.breaker);
        let search = LiveIndex::new(empty_index(&config));
        Self { registry, search, config }
    }

    /// Registers a source with its tools, or replaces the tools it had. Calls under way go on undisturbed.
    pub fn register(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Registration {
        let id = source.id.clone();
        let registration = self.registry.replace(source, tools);
        self.search.changed(&id);
        for (tool, reason) in &registration.rejected {
            tracing::warn!(source = %id, %tool, reason, "tool left out");
        }
        for tool in &registration.collisions {
            tracing::info!(source = %id, %tool, "several sources have this name");
        }
        registration
    }

    /// Takes a source out. Whether there was one.
    pub fn remove(&self, source: &SourceId) -> bool {
        let removed = self.registry.remove(source);
        self.search.changed(source);
        removed
    }

    pub(crate) fn past_requests(&self) -> Option<&Arc<dyn PastRequests>> {
        self.config.past_requests.as_ref()
    }

    /// All tools, ready to be searched.
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, SearchIndex> {
        let past =
            || self.config.past_requests.as_ref().map(|past| past.recent(MOST_PAST)).unwrap_or_default();
        self.search.current(|| self.snapshot(), past)
    }

    /// All tools at this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.registry.snapshot())
    }

    /// Whether nothing changed since this snapshot was taken.
    pub fn is_current(&self, snapshot: &Arc<Snapshot>) -> bool {
        Arc::ptr_eq(&self.registry.snapshot(), snapshot)
    }

    /// Tells of every change of tools from now on; several may be told of at once.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.registry.changes()
    }

    /// Where whole results are kept.
    pub fn results(&self) -> &Arc<dyn Results> {
        &self.config.results
    }

    /// The seeds' `discover_available_tools`: the preferred candidate of every name, by name.
    pub fn specs(&self) -> Vec<Arc<ToolCandidate>> {
        self.registry.snapshot().preferred()
    }

    /// All sources and how they are.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let now = Instant::now();
        self.registry.snapshot().sources().iter().map(|entry| SourceStatus::of(entry, now)).collect()
    }

    /// Carries out one call: finds who may answer, checks the arguments, asks, and shows what fits the budget.
    pub async fn execute(
        &self,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let call = self.call(request, options);
        let watched = Unrecorded { hub: self, call: &call, options, open: true };
        let outcome = self.by_name(&call, options).await.map_err(|failed| failed.error);
        watched.record(outcome)
    }

    /// Carries out a call when only the capability is known. Trusted tools that only read and take these arguments may
    /// answer together; any other is asked alone, and where there are several of those, none is.
    pub async fn execute_by_capability(
        &self,
        capability: &Capability,
        arguments: RawJson,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let request = ToolCallRequest::new(capability.as_str(), arguments);
        let call = self.call(&request, options);
        let watched = Unrecorded { hub: self, call: &call, options, open: true };
        let outcome = self.by_capability(&call, capability, options, |_| true).await;
        watched.record(outcome.map_err(|failed| failed.error))
    }

    /// The seeds' name → capability: a call by name, and where that certainly changed nothing, by capability. Only
    /// trusted tools that only read may stand in for the one that was named, and the answer says who failed.
    pub async fn execute_or_by_capability(
        &self,
        request: &ToolCallRequest,
        capability: &Capability,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let call = self.call(request, options);
        let watched = Unrecorded { hub: self, call: &call, options, open: true };
        let outcome = self.by_name_or_capability(&call, capability, options).await;
        watched.record(outcome)
    }

    async fn by_name_or_capability(
        &self,
        call: &Call<'_>,
        capability: &Capability,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = self.by_name(call, options).await;
        self.or_by_capability(call, capability, options, outcome).await
    }

    /// What came of a call by name, or what others of that capability answer where it certainly changed nothing.
    pub(crate) async fn or_by_capability(
        &self,
        call: &Call<'_>,
        capability: &Capability,
        options: &CallOptions,
        outcome: Result<ToolOutput, Failed>,
    ) -> Result<ToolOutput, ToolError> {
        let request = call.request;
        let failed = match outcome {
            Ok(output) => return Ok(output),
            Err(failed) => failed,
        };
        if !may_be_stood_in_for(request, &failed) {
            return Err(failed.error);
        }
        call.note("route", None, || {
            let why = failed.error.message();
            (request.tool_name.clone(), format!("{why}: trying the capability `{capability}`"))
        });
        let may_stand_in = |tool: &ToolCandidate| {
            tool.source.info.trusted && tool.hints.read_only && *tool.name != *request.tool_name
        };
        match self.by_capability(call, capability, options, may_stand_in).await {
            Ok(mut output) => {
                output.meta.failed.splice(0..0, failed.lines);
                Ok(output)
            }
            // The failure under the name the caller used says more than the lack of a substitute.
            Err(_) => Err(failed.error),
        }
    }

    async fn by_name(&self, call: &Call<'_>, options: &CallOptions) -> Result<ToolOutput, Failed> {
        let prepared = self.prepared(call)?;
        self.answered(call, &prepared, options).await
    }

    /// Who may answer a call by name, in the order in which they are asked.
    pub(crate) fn prepared(&self, call: &Call<'_>) -> Result<Prepared, Failed> {
        let mut route = route_within(&self.registry.snapshot(), call.request, call.profile)?;
        let Fitting { mut fit, unfit, objection } =
            fitting(std::mem::take(&mut route.candidates), &call.request.arguments);
        call.note("route", None, || {
            let words = route_words(route.case, &fit, &unfit, passed_over(&route));
            (call.request.tool_name.clone(), words)
        });
        if let (Some(objection), true) = (objection, fit.is_empty()) {
            return Err(objection.into());
        }
        let history = &*self.config.history;
        order(&mut fit, history);
        call.note("order", None, || (call.request.tool_name.clone(), order_words(&fit, Some(history))));
        Ok(Prepared { candidates: fit, not_asked: not_asked(&route) })
    }

    /// The answer of those who may answer, as much of it as is shown.
    pub(crate) async fn answered(
        &self,
        call: &Call<'_>,
        prepared: &Prepared,
        options: &CallOptions,
    ) -> Result<ToolOutput, Failed> {
        let asked =
            self.ask(call, &prepared.candidates, None).await.map_err(|failed| match &prepared.not_asked {
                None => failed,
                Some(hint) => failed.with_hint(hint.clone()),
            })?;
        Ok(self.show(call, asked, options).await)
    }

    async fn by_capability(
        &self,
        call: &Call<'_>,
        capability: &Capability,
        options: &CallOptions,
        may_answer: impl Fn(&ToolCandidate) -> bool,
    ) -> Result<ToolOutput, Failed> {
        let mut found = self.registry.snapshot().find_by_capability(capability.as_str());
        found.retain(|tool| may_answer(tool) && call.profile.is_none_or(|profile| profile.offers(tool)));
        let arguments = read(&call.request.arguments)?;
        let Picked { candidates, unfit } = pick(&found, &arguments).map_err(|why| match why {
            NotPicked::Nobody => self.unknown_capability(capability),
            NotPicked::Unfit(objection) => objection,
            NotPicked::Several(several) => name_one(capability, &several),
        })?;
        let subject = || capability.to_string();
        call.note("route", None, || {
            (subject(), route_words(RouteCase::Automatic, &candidates, &unfit, None))
        });
        call.note("order", None, || (subject(), order_words(&candidates, None)));
        let asked = self.ask(call, &candidates, Some(capability)).await?;
        Ok(self.show(call, asked, options).await)
    }

    async fn ask(
        &self,
        call: &Call<'_>,
        candidates: &[Arc<ToolCandidate>],
        capability: Option<&Capability>,
    ) -> Result<Asked, Failed> {
        ask(call, candidates, capability, self.config.synthesizer.as_ref()).await
    }

    async fn show(&self, call: &Call<'_>, asked: Asked, options: &CallOptions) -> ToolOutput {
        let limit = match options.budget {
            Budget::Whole => usize::MAX,
            Budget::ByKind => self.config.limits.for_kind(asked.kind),
            Budget::Characters(limit) => limit,
        };
        let structured = asked.output.structured.clone().filter(|_| options.keep_form);
        let mut output = show(call, asked, limit, &*self.config.results).await;
        if let (Some(structured), Some(_)) = (structured, &output.meta.omitted)
            && let Some(schema) = self.promised_form(call, &output)
        {
            output.structured = Some(fitted(&structured, limit, &schema));
        }
        output
    }

    /// The form that whoever answered promises for its structured results.
    fn promised_form(&self, call: &Call<'_>, output: &ToolOutput) -> Option<RawJson> {
        let source = output.meta.source.as_ref()?;
        let snapshot = self.registry.snapshot();
        snapshot.find_in(&call.request.tool_name, source.as_str())?.spec().output_schema.clone()
    }

    fn unknown_capability(&self, capability: &Capability) -> ToolError {
        let known = self.registry.snapshot().capabilities();
        let words: Vec<&str> = known.iter().map(Capability::as_str).collect();
        ToolError::new(ErrorKind::UnknownCapability, format!("no tool has the capability `{capability}`"))
            .with_hint(format!("there are {}", words.join(", ")))
    }

    /// Writes the call down in the audit log, whatever came of it.
    pub(crate) fn record(
        &self,
        call: &Call<'_>,
        options: &CallOptions,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        if let Some(audit) = &self.config.audit {
            audit.record(audit_record(call, &options.who, &outcome));
        }
        if let (Ok(_), Some(request)) = (&outcome, &options.request) {
            self.remember(call, request);
        }
        outcome
    }

    /// Remembers what those who answered were used for.
    fn remember(&self, call: &Call<'_>, request: &str) {
        let Some(past_requests) = &self.config.past_requests else { return };
        let answered = call.answered.as_ref().map(|answered| answered.lock());
        let answered = answered.map(|answered| answered.unwrap_or_else(PoisonError::into_inner));
        for (tool, source) in answered.iter().flat_map(|answered| answered.iter()) {
            if let Some(past) = PastRequest::new(&**tool, source.clone(), request) {
                self.search.remember(&past);
                past_requests.record(past);
            }
        }
    }

    pub(crate) fn call<'a>(&'a self, request: &'a ToolCallRequest, options: &'a CallOptions) -> Call<'a> {
        let patience = options.timeout.min(LONGEST);
        Call {
            request,
            deadline: Instant::now() + patience,
            patience,
            retry: self.config.retry,
            history: &*self.config.history,
            trail: options.trail.as_deref(),
            watch: options.watch.as_deref(),
            caller: options.caller.as_ref(),
            profile: options.profile.as_deref(),
            idempotency_key: None,
            attempts: AtomicU32::new(0),
            answered: options.request.is_some().then(Mutex::default),
        }
    }
}

/// An index without tools.
fn empty_index(config: &HubConfig) -> SearchIndex {
    let index = SearchIndex::with_lexicon(Arc::clone(&config.lexicon));
    #[cfg(feature = "embedding")]
    if let Some(model) = &config.model {
        return index.with_model(Arc::clone(model));
    }
    index
}

/// A call that is not in the audit log yet. Whoever gives it up in the middle leaves a record all the same.
pub(crate) struct Unrecorded<'a> {
    pub(crate) hub: &'a ToolHub,
    pub(crate) call: &'a Call<'a>,
    pub(crate) options: &'a CallOptions,
    pub(crate) open: bool,
}

impl Unrecorded<'_> {
    pub(crate) fn record(mut self, outcome: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
        self.open = false;
        self.hub.record(self.call, self.options, outcome)
    }
}

impl Drop for Unrecorded<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let (kind, message) = match self.call.attempts() {
            0 => (ErrorKind::Unavailable, "the caller left before anyone was asked"),
            _ => (ErrorKind::Lost, "the caller left before the answer came"),
        };
        // The record is all that is wanted of it.
        let _ = self.hub.record(self.call, self.options, Err(ToolError::new(kind, message)));
    }
}

/// Who may answer a call, and what to say of others when none of them can.
pub(crate) struct Prepared {
    pub(crate) candidates: Vec<Arc<ToolCandidate>>,
    not_asked: Option<String>,
}

/// Nobody stands in for a source that was named, against a refusal, or where something may have been changed.
pub(crate) fn may_be_stood_in_for(request: &ToolCallRequest, failed: &Failed) -> bool {
    let named_a_source = request.source.as_deref().is_some_and(|source| !SourceId::is_native_hint(source));
    let final_word = matches!(failed.error.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Refused);
    failed.no_effect && !named_a_source && !final_word
}

/// Candidates sorted by whether their schema takes the arguments.
struct Fitting {
    fit: Vec<Arc<ToolCandidate>>,
    unfit: Vec<Arc<ToolCandidate>>,
    /// What the first that does not take them says.
    objection: Option<ToolError>,
}

fn fitting(candidates: Vec<Arc<ToolCandidate>>, arguments: &RawJson) -> Fitting {
    let arguments = read(arguments);
    let (mut fit, mut unfit, mut objection) = (candidates, Vec::new(), None);
    fit.retain(|candidate| {
        let checked = match &arguments {
            Ok(arguments) => candidate.check(arguments),
            Err(unreadable) => Err(candidate.locate(unreadable.clone())),
        };
        let Err(error) = checked else { return true };
        objection.get_or_insert_with(|| {
            error.with_hint(format!("see what it takes: toolyard tools show {}", candidate.name))
        });
        unfit.push(Arc::clone(candidate));
        false
    });
    Fitting { fit, unfit, objection }
}

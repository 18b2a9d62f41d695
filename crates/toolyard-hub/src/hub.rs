//! The hub: registers sources, and carries out one call from its name or capability to the answer that is shown.

use std::{
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use tokio::time::Instant;
use toolyard_core::{
    Capability, CapabilityTable, ErrorKind, History, RawJson, Results, SourceId, SourceInfo, Synthesizer,
    Tool, ToolCallRequest, ToolError, ToolKind, ToolOutput,
};

use crate::{
    attempt::Call,
    breaker::{BreakerSettings, BreakerState},
    budget::{Budget, Cut, Limits, cut, show_part},
    candidate::ToolCandidate,
    capability_pick::pick,
    decision::Trail,
    execution::{Asked, ask},
    history::RecentSuccess,
    order::{Ties, order},
    registry::{Registration, Registry, Snapshot, SourceEntry},
    results::MemoryResults,
    retry::RetryPolicy,
    router::{RouteCase, route},
    rules::RoutingRules,
    suggest::listed,
};

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

/// How one call is to be carried out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// Nothing of the call goes on longer than this.
    pub timeout: Duration,
    /// How much of the answer is shown.
    pub budget: Budget,
    /// Where decisions are written down, for whoever wants them explained.
    pub trail: Option<Arc<Trail>>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), budget: Budget::default(), trail: None }
    }
}

impl CallOptions {
    /// The same options with another time limit.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same options with another budget.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// The same options with decisions written down.
    #[must_use]
    pub fn with_trail(mut self, trail: Arc<Trail>) -> Self {
        self.trail = Some(trail);
        self
    }
}

/// A source as it can be seen from outside.
#[derive(Debug, Clone)]
pub struct SourceStatus {
    /// What was said at registration.
    pub info: SourceInfo,
    /// Its tools.
    pub tools: Vec<Arc<ToolCandidate>>,
    /// Whether it is left alone at the moment.
    pub breaker: BreakerState,
}

/// One registry of all tools, and the way every call takes.
#[derive(Debug)]
pub struct ToolHub {
    registry: Registry,
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
        Self { registry, config }
    }

    /// Registers a source with its tools, or replaces the tools it had. Calls under way go on undisturbed.
    pub fn register(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Registration {
        let id = source.id.clone();
        let registration = self.registry.replace(source, tools);
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
        self.registry.remove(source)
    }

    /// All tools at this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.registry.snapshot())
    }

    /// The seeds' `discover_available_tools`: the preferred candidate of every name, by name.
    pub fn specs(&self) -> Vec<Arc<ToolCandidate>> {
        self.registry.snapshot().preferred()
    }

    /// All sources and how they are.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let now = Instant::now();
        let status = |entry: SourceEntry| SourceStatus {
            info: entry.source.info.clone(),
            tools: entry.tools.to_vec(),
            breaker: entry.source.state.breaker.state(now),
        };
        self.registry.snapshot().sources().into_iter().map(status).collect()
    }

    /// Carries out one call: finds who may answer, checks the arguments, asks, and shows what fits the budget.
    pub async fn execute(
        &self,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        self.by_name(&self.call(request, options), options).await
    }

    /// Carries out a call when only the capability is known: every tool that has it and takes these arguments may
    /// answer, under the same rules as tools of one name.
    pub async fn execute_by_capability(
        &self,
        capability: &Capability,
        arguments: RawJson,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let request = ToolCallRequest::new(capability.as_str(), arguments);
        self.by_capability(&self.call(&request, options), capability, options, |_| true).await
    }

    /// The seeds' name → capability: a call by name, and where that fails without consequences, by capability. Only
    /// trusted tools without side effects may stand in for the one that was named.
    pub async fn execute_or_by_capability(
        &self,
        request: &ToolCallRequest,
        capability: &Capability,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let call = self.call(request, options);
        let error = match self.by_name(&call, options).await {
            Ok(output) => return Ok(output),
            Err(error) => error,
        };
        let named_a_source =
            request.source.as_deref().is_some_and(|source| !SourceId::is_native_hint(source));
        if named_a_source || matches!(error.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Refused) {
            return Err(error);
        }
        call.note("route", None, || {
            (request.tool_name.clone(), format!("{}: trying the capability `{capability}`", error.message()))
        });
        let may_stand_in = |tool: &ToolCandidate| {
            tool.source.info.trusted && tool.hints.repeatable() && *tool.name != *request.tool_name
        };
        // The failure under the name the caller used says more than the lack of a substitute.
        self.by_capability(&call, capability, options, may_stand_in).await.map_err(|_| error)
    }

    async fn by_name(&self, call: &Call<'_>, options: &CallOptions) -> Result<ToolOutput, ToolError> {
        let route = route(&self.registry.snapshot(), call.request)?;
        call.note("route", None, || {
            (call.request.tool_name.clone(), route_words(&route.candidates, route.case))
        });
        let mut candidates = accepting(route.candidates, &call.request.arguments)?;
        order(&mut candidates, &*self.config.history, Ties::Sequence);
        let asked =
            self.ask(call, &candidates, None).await.map_err(|error| match route.passed_over.as_slice() {
                [] => error,
                others => error.with_hint(not_asked(others)),
            })?;
        Ok(self.show(call, asked, options).await)
    }

    async fn by_capability(
        &self,
        call: &Call<'_>,
        capability: &Capability,
        options: &CallOptions,
        may_answer: impl Fn(&ToolCandidate) -> bool,
    ) -> Result<ToolOutput, ToolError> {
        let mut found = self.registry.snapshot().find_by_capability(capability.as_str());
        found.retain(|candidate| may_answer(candidate));
        let candidates = pick(found, &call.request.arguments, &*self.config.history)
            .map_err(|refused| refused.unwrap_or_else(|| self.unknown_capability(capability)))?;
        call.note("route", None, || (capability.to_string(), route_words(&candidates, RouteCase::Automatic)));
        let asked = self.ask(call, &candidates, Some(capability)).await?;
        Ok(self.show(call, asked, options).await)
    }

    async fn ask(
        &self,
        call: &Call<'_>,
        candidates: &[Arc<ToolCandidate>],
        capability: Option<&Capability>,
    ) -> Result<Asked, ToolError> {
        ask(call, candidates, capability, self.config.synthesizer.as_ref()).await
    }

    fn unknown_capability(&self, capability: &Capability) -> ToolError {
        let known = self.registry.snapshot().capabilities();
        let words: Vec<&str> = known.iter().map(Capability::as_str).collect();
        ToolError::new(ErrorKind::UnknownCapability, format!("no tool has the capability `{capability}`"))
            .with_hint(format!("there are {}", words.join(", ")))
    }

    fn call<'a>(&'a self, request: &'a ToolCallRequest, options: &'a CallOptions) -> Call<'a> {
        Call {
            request,
            deadline: Instant::now() + options.timeout,
            patience: options.timeout,
            retry: self.config.retry,
            history: &*self.config.history,
            trail: options.trail.as_deref(),
            attempts: AtomicU32::new(0),
        }
    }

    /// Cuts what is too long for the budget, and keeps the whole where it can be read.
    async fn show(&self, call: &Call<'_>, asked: Asked, options: &CallOptions) -> ToolOutput {
        let Asked { mut output, kind, whole } = asked;
        output.meta.attempts = call.attempts.load(std::sync::atomic::Ordering::Relaxed);
        let limit = match options.budget {
            Budget::Whole => usize::MAX,
            Budget::ByKind => self.config.limits.for_kind(kind),
            Budget::Characters(limit) => limit,
        };
        if let Some(part) = part_to_show(&output, whole.as_deref(), limit) {
            let cut =
                Cut { kept: &part.kept, kept_characters: part.kept_characters, total_characters: part.total };
            let reference = self.config.results.keep(&part.whole).await;
            if let Err(error) = &reference {
                tracing::warn!(%error, "the whole result is lost");
            }
            show_part(&mut output, cut, reference.ok());
        }
        call.note("result", None, || {
            let shown =
                output.meta.omitted.as_ref().map_or_else(|| "shown whole".to_owned(), ToString::to_string);
            (kind_word(kind).to_owned(), shown)
        });
        output
    }
}

/// What is shown of an answer that does not fit.
struct Part {
    kept: String,
    kept_characters: usize,
    whole: String,
    total: usize,
}

/// Nothing when all of it may be shown. What the sources said in full, where there is more than the text, is the whole.
fn part_to_show(output: &ToolOutput, fuller: Option<&str>, limit: usize) -> Option<Part> {
    if output.sized || (limit == usize::MAX && fuller.is_none()) {
        return None;
    }
    let text = match &output.structured {
        Some(structured) if output.content.is_empty() => structured.get().to_owned(),
        _ => output.to_text(),
    };
    let fitted = cut(&text, limit);
    if fitted.is_none() && fuller.is_none() {
        return None;
    }
    let kept = fitted.map_or(text.as_str(), |part| part.kept).to_owned();
    let kept_characters = kept.chars().count();
    let whole = fuller.map_or(text, str::to_owned);
    Some(Part { kept, kept_characters, total: whole.chars().count(), whole })
}

/// Those whose schema takes the arguments, or the first one's objection.
fn accepting(
    candidates: Vec<Arc<ToolCandidate>>,
    arguments: &RawJson,
) -> Result<Vec<Arc<ToolCandidate>>, ToolError> {
    let mut objection = None;
    let mut accepting = candidates;
    accepting.retain(|candidate| match candidate.check(arguments) {
        Ok(()) => true,
        Err(error) => {
            objection.get_or_insert_with(|| {
                error.with_hint(format!("see what it takes: toolyard tools show {}", candidate.name))
            });
            false
        }
    });
    match objection {
        Some(objection) if accepting.is_empty() => Err(objection),
        _ => Ok(accepting),
    }
}

fn route_words(candidates: &[Arc<ToolCandidate>], case: RouteCase) -> String {
    let named: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    let word = if named.len() == 1 { "candidate" } else { "candidates" };
    format!("{} {word}: {}; {}", named.len(), named.join(", "), case.words())
}

fn not_asked(others: &[SourceId]) -> String {
    let names: Vec<&str> = others.iter().map(SourceId::as_str).collect();
    format!(
        "not asked, because not known to be equivalent: {}; name one as the source to use it",
        listed(&names).replace(" or ", " and ")
    )
}

fn kind_word(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Calculate => "calculate",
        ToolKind::Time => "time",
        ToolKind::Search => "search",
        ToolKind::Extract => "extract",
        ToolKind::History => "history",
        ToolKind::Other => "other",
    }
}

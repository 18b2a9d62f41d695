//! [`HubService`]: one profile of a hub as a tool service.

use std::{
    cell::LazyCell,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use toolyard_core::{
    BoxFuture, CallPolicy, CallerIdentity, Catalogue, ClientInfo, DataOwner, ErrorKind, Journal, ListedTool,
    RawJson, ServiceCall, ToolCallRequest, ToolError, ToolOutput, ToolService,
};

use toolyard_hub::{CallOptions, PendingEffect, Profile, Snapshot, Surface, ToolHub};
use toolyard_mcp_client::McpManager;

use super::{
    exposed_tools::{ExposedTool, ExposedTools},
    name_errors::{ambiguous_name, unknown_tool},
    permitted_tools::{PermittedCatalogues, ToolPermissions, VisibleTools, is_same_policy},
    raw_result::{sanitize_error, sanitize_output},
    search_surface_calls::{self, FoundTool, SearchQuery},
    search_surface_definitions,
    server_instructions::server_instructions,
    surface_choice::prefers_search,
};
use crate::naming::tool_names::{CALL_TOOL, DESCRIBE_TOOL, RESERVED_NAMES, SEARCH_TOOLS};

/// Fewer tools are indexed by the first search.
const MIN_TOOLS_TO_PREPARE: usize = 10_000;
/// A search that asked the hub for more hits than this is not repeated with a larger limit.
const MAX_WIDENED_HITS: usize = 1_000;

/// Serves the tools of one profile of a hub.
pub struct HubService {
    hub: Arc<ToolHub>,
    /// The servers whose instructions are passed on, if they are trusted.
    servers: Option<Arc<McpManager>>,
    profile: Arc<Profile>,
    exposed: ArcSwapOption<ExposedTools>,
    /// The latest catalogues of both surfaces. Versions of the full one are even, those of the search one odd, so that a
    /// version tells which one a client has seen.
    full: ArcSwapOption<CachedCatalogue>,
    search: ArcSwapOption<CachedCatalogue>,
    /// What of the full catalogue callers may call, if a policy decides that.
    permitted: PermittedCatalogues,
    /// Journals every call; the text is the owner of the leases.
    journal: Option<(Arc<dyn Journal>, String)>,
    /// Held while `exposed` or a catalogue is rebuilt; not needed to read them.
    rebuild: Mutex<()>,
    /// Whether this service has started to index its tools before the first search, which it does once.
    is_indexing_started: AtomicBool,
}

struct CachedCatalogue {
    snapshot: Arc<Snapshot>,
    /// The policy then: with another one, callers may see other tools.
    policy: Option<Arc<dyn CallPolicy>>,
    catalogue: Arc<Catalogue>,
}

/// A surface after `auto` is resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResolvedSurface {
    Full,
    Search,
}

impl HubService {
    /// Serves a profile of a hub.
    pub fn new(hub: Arc<ToolHub>, profile: Profile) -> Self {
        Self {
            hub,
            servers: None,
            profile: Arc::new(profile),
            exposed: ArcSwapOption::empty(),
            full: ArcSwapOption::empty(),
            search: ArcSwapOption::empty(),
            permitted: PermittedCatalogues::default(),
            journal: None,
            rebuild: Mutex::default(),
            is_indexing_started: AtomicBool::default(),
        }
    }

    /// Passes on what the trusted ones of these servers say about the use of their tools.
    #[must_use]
    pub fn with_instructions_of(mut self, servers: Arc<McpManager>) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Journals every call before and after it is made. A call that cannot be journaled is not made.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>, owner: impl Into<String>) -> Self {
        self.journal = Some((journal, owner.into()));
        self
    }

    /// How many tools the profile exposes now, on whichever surface.
    pub fn tool_count(&self) -> usize {
        self.exposed().tools.len()
    }

    /// Executes a call of the HTTP API, which names its tool as [`ToolService::call`] does, or by the tool's own name and its source. The tools of
    /// the search surface are not among them. `pending_effect` tells whether a call with side effects has started.
    pub(crate) async fn call_from_http(
        &self,
        call: &ServiceCall,
        pending_effect: Option<Arc<PendingEffect>>,
    ) -> Result<ToolOutput, ToolError> {
        let (request, identity) = (&call.request, identity_of(call));
        let mut options = self.options(call);
        options.pending_effect = pending_effect;
        if request.source.is_some() {
            return self.execute_named(request, &options, identity).await;
        }
        if RESERVED_NAMES.contains(&request.tool_name.as_str()) {
            let error = unknown_tool(&request.tool_name, &self.visible_to(identity));
            return Err(self.hub.refuse(request, &options, error));
        }
        self.execute(request, &options, identity).await
    }

    /// Whether tools of the profile have this name, and none of them is called by it alone.
    pub(crate) fn is_ambiguous(&self, name: &str) -> bool {
        !self.hub.snapshot().contenders(name, Some(&self.profile)).is_empty()
            || RESERVED_NAMES.contains(&name)
    }

    /// The tools of the profile under the names that clients see.
    pub(crate) fn exposed(&self) -> Arc<ExposedTools> {
        if let Some(exposed) = self.current_exposed() {
            return exposed;
        }
        let _rebuild = self.rebuild.lock();
        self.rebuild_exposed()
    }

    fn current_exposed(&self) -> Option<Arc<ExposedTools>> {
        let exposed = self.exposed.load();
        let exposed = exposed.as_ref().filter(|exposed| self.hub.is_current(&exposed.snapshot))?;
        Some(Arc::clone(exposed))
    }

    /// Must be called while `rebuild` is locked.
    fn rebuild_exposed(&self) -> Arc<ExposedTools> {
        // Another thread may have done it while this one waited for the lock.
        if let Some(exposed) = self.current_exposed() {
            return exposed;
        }
        let (snapshot, before) = (self.hub.snapshot(), self.exposed.load());
        let updated = before.as_ref().and_then(|before| before.updated(&snapshot));
        let exposed = Arc::new(updated.unwrap_or_else(|| ExposedTools::new(snapshot, &self.profile)));
        self.exposed.store(Some(Arc::clone(&exposed)));
        exposed
    }

    /// The catalogue of a surface. Pointer and version stay the same until a tool changes.
    fn surface_catalogue(&self, surface: ResolvedSurface) -> Arc<Catalogue> {
        let cache = match surface {
            ResolvedSurface::Full => &self.full,
            ResolvedSurface::Search => &self.search,
        };
        if let Some(cached) = cache.load().as_ref().filter(|cached| self.hub.is_current(&cached.snapshot)) {
            return Arc::clone(&cached.catalogue);
        }
        let _rebuild = self.rebuild.lock();
        let exposed = self.rebuild_exposed();
        let before = cache.load();
        let version = match before.as_ref() {
            Some(cached) if Arc::ptr_eq(&cached.snapshot, &exposed.snapshot) => {
                return Arc::clone(&cached.catalogue);
            }
            Some(cached) => cached.catalogue.version + 2,
            None => surface.first_version(),
        };
        let (tools, policy) = (surface.tools(&exposed), self.hub.policy());
        let catalogue = match before.as_ref() {
            Some(cached)
                if cached.catalogue.tools == tools
                    && is_same_policy(cached.policy.as_ref(), policy.as_ref()) =>
            {
                Arc::clone(&cached.catalogue)
            }
            _ => Arc::new(Catalogue { version, tools }),
        };
        let snapshot = Arc::clone(&exposed.snapshot);
        let cached = CachedCatalogue { snapshot, policy, catalogue: Arc::clone(&catalogue) };
        cache.store(Some(Arc::new(cached)));
        catalogue
    }

    /// Indexes many tools as soon as a client may search them, so that its first search does not wait for all of that.
    fn prepare_search(&self) {
        if self.is_indexing_started.load(Ordering::Relaxed)
            || self.exposed().tools.len() < MIN_TOOLS_TO_PREPARE
        {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_indexing_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let hub = Arc::clone(&self.hub);
        runtime.spawn(async move {
            hub.wait_until_searchable(&[]).await;
            // An index that is not finished when the process ends is not needed any more.
            drop(tokio::task::spawn_blocking(move || hub.prepare_search()));
        });
    }

    fn options(&self, call: &ServiceCall) -> CallOptions {
        let mut options = CallOptions::for_caller(Arc::clone(&call.caller_name));
        options.timeout = self.profile.timeout;
        options.budget = self.profile.budget;
        options.caller = call.caller.clone();
        options.keep_structured_valid = true;
        let is_needed = !self.profile.allows_everything() || self.hub.has_policy();
        options.profile = is_needed.then(|| Arc::clone(&self.profile));
        options
    }

    /// What the caller may call; `None` if no policy decides that.
    fn permissions(&self, identity: Option<&Arc<CallerIdentity>>) -> Option<ToolPermissions> {
        let profile = Arc::clone(&self.profile.name);
        self.hub.policy().map(|policy| ToolPermissions { policy, identity: identity.cloned(), profile })
    }

    /// The tools of the profile that this caller may call.
    pub(crate) fn visible_to(&self, identity: Option<&Arc<CallerIdentity>>) -> VisibleTools {
        VisibleTools { exposed: self.exposed(), permissions: self.permissions(identity) }
    }

    async fn execute(
        &self,
        request: &ToolCallRequest,
        options: &CallOptions,
        identity: Option<&Arc<CallerIdentity>>,
    ) -> Result<ToolOutput, ToolError> {
        // A name without a dot is the tool's own name, which the hub resolves.
        if !request.tool_name.contains('.') {
            return self.execute_named(request, options, identity).await;
        }
        let exposed = self.exposed();
        if let Some(tool) = exposed.find(&request.tool_name) {
            return self.execute_in_hub(&tool.to_hub_request(request), options).await;
        }
        match exposed.not_callable(request) {
            // The hub refuses the call and records why.
            Some(request) => self.execute_named(&request, options, identity).await,
            // No tool has an `@` in its name, so this names the source.
            None if request.tool_name.contains('@') => self.execute_named(request, options, identity).await,
            None => {
                let error = unknown_tool(&request.tool_name, &self.visible_to(identity));
                Err(self.hub.refuse(request, options, error))
            }
        }
    }

    /// Executes a call whose name the hub resolves.
    async fn execute_named(
        &self,
        request: &ToolCallRequest,
        options: &CallOptions,
        identity: Option<&Arc<CallerIdentity>>,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = self.execute_in_hub(request, options).await;
        outcome.map_err(|error| self.with_exposed_names(request, error, identity))
    }

    /// The hub names the tools of an ambiguous or unknown name as it knows them; clients may see some of them under other names,
    /// or not at all.
    fn with_exposed_names(
        &self,
        request: &ToolCallRequest,
        error: ToolError,
        identity: Option<&Arc<CallerIdentity>>,
    ) -> ToolError {
        let name = request.tool_name.as_str();
        match error.kind() {
            ErrorKind::Refused if self.is_ambiguous(name) => {
                ambiguous_name(name, &self.visible_to(identity)).unwrap_or(error)
            }
            ErrorKind::UnknownTool if self.hub.has_policy() => unknown_tool(name, &self.visible_to(identity)),
            ErrorKind::UnknownSource if self.hub.has_policy() => {
                let error = ToolError::new(ErrorKind::UnknownSource, "no such source has this tool");
                error.on_tool(name).with_hint("omit the source to route automatically")
            }
            _ => error,
        }
    }

    async fn execute_in_hub(
        &self,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = match &self.journal {
            None => self.hub.execute(request, options).await,
            Some((journal, owner)) => {
                Box::pin(self.hub.execute_journaled(&**journal, owner, request, options)).await
            }
        };
        let results = &**self.hub.results();
        match outcome {
            Ok(output) => Ok(sanitize_output(output, results, options.data_owner()).await),
            Err(error) => Err(sanitize_error(error, results, options.data_owner()).await),
        }
    }

    async fn search(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        let query = search_surface_calls::search_query(&call.request)?;
        let identity = identity_of(call);
        let owner = DataOwner::of(identity.map(|identity| &**identity));
        self.hub.wait_until_searchable(&[&query.query]).await;
        let (hub, visible) = (Arc::clone(&self.hub), self.visible_to(identity));
        let search = tokio::task::spawn_blocking(move || {
            let found = search_visible(&hub, owner, &visible, &query);
            search_surface_calls::search_results(&query, &found, &visible)
        });
        search.await.map_err(|_| ToolError::new(ErrorKind::Internal, "the search panicked"))
    }

    fn describe_tool(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        let name = search_surface_calls::described_name(&call.request)?;
        let visible = self.visible_to(identity_of(call));
        let tool = visible.find(&name).ok_or_else(|| unknown_tool(&name, &visible))?;
        Ok(ToolOutput::text(tool.definition().definition.get()).exempt_from_budget())
    }
}

impl ToolService for HubService {
    fn catalogue(&self, client: &ClientInfo) -> Arc<Catalogue> {
        let surface = match self.profile.surface {
            Surface::Full => ResolvedSurface::Full,
            Surface::Search => ResolvedSurface::Search,
            Surface::Auto if prefers_search(client.name.as_deref(), self.exposed().size) => {
                ResolvedSurface::Search
            }
            Surface::Auto => ResolvedSurface::Full,
        };
        let catalogue = self.surface_catalogue(surface);
        if surface == ResolvedSurface::Search {
            self.prepare_search();
        }
        match self.permissions(client.identity.as_ref()) {
            Some(permissions) if surface == ResolvedSurface::Full => {
                self.permitted.get(catalogue, permissions, &self.exposed())
            }
            _ => catalogue,
        }
    }

    fn changed(&self, seen_version: u64) -> BoxFuture<'_, u64> {
        let mut changes = self.hub.changes();
        Box::pin(async move {
            loop {
                changes.borrow_and_update();
                let now = self.surface_catalogue(ResolvedSurface::of_version(seen_version)).version;
                if now != seen_version {
                    return now;
                }
                if changes.changed().await.is_err() {
                    // The hub is gone: nothing changes any more.
                    return std::future::pending().await;
                }
            }
        })
    }

    fn describe(&self, name: &str, client: &ClientInfo) -> Option<RawJson> {
        let visible = self.visible_to(client.identity.as_ref());
        let tool = search_surface_definitions::search_surface_tool(name, &visible.exposed)
            .or_else(|| visible.find(name).map(ExposedTool::definition))?;
        Some(tool.definition)
    }

    fn instructions(&self, client: &ClientInfo) -> Option<String> {
        let visible = LazyCell::new(|| self.visible_to(client.identity.as_ref()));
        server_instructions(self.servers.as_deref()?, |source| visible.has_tools_of(source))
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match call.request.tool_name.as_str() {
                SEARCH_TOOLS => self.search(call).await,
                DESCRIBE_TOOL => self.describe_tool(call),
                CALL_TOOL => {
                    let inner = search_surface_calls::inner_call(&call.request)?;
                    if RESERVED_NAMES.contains(&inner.tool_name.as_str()) {
                        let error = unknown_tool(&inner.tool_name, &self.visible_to(identity_of(call)));
                        return Err(self.hub.refuse(&inner, &self.options(call), error));
                    }
                    self.execute(&inner, &self.options(call), identity_of(call)).await
                }
                _ => self.execute(&call.request, &self.options(call), identity_of(call)).await,
            }
        })
    }
}

impl ResolvedSurface {
    fn of_version(version: u64) -> Self {
        if version.is_multiple_of(2) { Self::Full } else { Self::Search }
    }

    fn first_version(self) -> u64 {
        match self {
            Self::Full => 2,
            Self::Search => 1,
        }
    }

    fn tools(self, exposed: &ExposedTools) -> Vec<ListedTool> {
        match self {
            Self::Full => exposed.definitions(),
            Self::Search => search_surface_definitions::search_surface(exposed),
        }
    }
}

impl fmt::Debug for HubService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubService").field("profile", &self.profile).finish_non_exhaustive()
    }
}

fn identity_of(call: &ServiceCall) -> Option<&Arc<CallerIdentity>> {
    call.caller.as_ref().and_then(|caller| caller.identity())
}

/// Visible tools among the search results of the hub. Searches again with a larger limit if too few results are visible.
fn search_visible<'a>(
    hub: &ToolHub,
    owner: DataOwner,
    visible: &'a VisibleTools,
    query: &SearchQuery,
) -> Vec<FoundTool<'a>> {
    let max_results = query.max_results();
    let mut limit = max_results;
    loop {
        let hits = hub.search_for(owner, &query.query, limit);
        let mut tools: Vec<FoundTool<'_>> = Vec::with_capacity(max_results);
        for hit in &hits {
            // A hit stands for its duplicates too; the first exposed one is shown, and the others are named.
            let duplicates = std::iter::once(&hit.tool).chain(&hit.duplicates);
            let mut same: Vec<&ExposedTool> = Vec::new();
            let found = duplicates.filter_map(|tool| visible.exposed.find_candidate(tool));
            for tool in found.filter(|tool| visible.may_call(tool)) {
                let is_known = |known: &&ExposedTool| std::ptr::eq(*known, tool);
                let is_found =
                    |found: &FoundTool<'_>| is_known(&found.tool) || found.same.iter().any(is_known);
                if !same.iter().any(is_known) && !tools.iter().any(is_found) {
                    same.push(tool);
                }
            }
            if !same.is_empty() {
                let tool = same.remove(0);
                tools.push(FoundTool { tool, score: hit.score, same });
            }
        }
        if tools.len() >= max_results || hits.len() < limit || limit > MAX_WIDENED_HITS {
            tools.truncate(max_results);
            return tools;
        }
        limit *= 4;
    }
}

#[cfg(test)]
#[path = "hub_service_tests.rs"]
mod tests;

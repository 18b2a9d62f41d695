//! The hub as it is served: one profile of it, with the names, the list and the calls of its clients.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwapOption;
use toolyard_core::{
    BoxFuture, Catalogue, ErrorKind, Journal, OfferedTool, RawJson, ServiceCall, ToolCallRequest, ToolError,
    ToolOutput, ToolService, Viewer,
};

use super::{
    auto::automatic,
    finding,
    names::{CALL_TOOL, DESCRIBE_TOOL, RESERVED, SEARCH_TOOLS},
    offer::{Offer, Offering},
    profile::{Profile, Surface},
    words,
};
use crate::{
    hub::ToolHub,
    options::CallOptions,
    registry::Snapshot,
    suggest::{Shape, did_you_mean, listed},
};

/// One profile of a hub, served.
pub struct HubService {
    hub: Arc<ToolHub>,
    profile: Arc<Profile>,
    offer: ArcSwapOption<Offer>,
    /// The catalogues as they were shown last. Numbers of the full one are even, those of the other odd: whoever waits for
    /// a change says with the number which one it has seen.
    full: ArcSwapOption<Written>,
    search: ArcSwapOption<Written>,
    /// Where every call is written down before it is made and after, if anywhere, and by whom.
    journal: Option<(Arc<dyn Journal>, String)>,
    /// Held by whoever writes anew what has changed, never by who reads it.
    writing: Mutex<()>,
}

/// A catalogue, and the tools it was made from.
struct Written {
    of: Arc<Snapshot>,
    catalogue: Arc<Catalogue>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Full,
    Search,
}

impl HubService {
    /// Serves this profile of a hub.
    pub fn new(hub: Arc<ToolHub>, profile: Profile) -> Self {
        Self {
            hub,
            profile: Arc::new(profile),
            offer: ArcSwapOption::empty(),
            full: ArcSwapOption::empty(),
            search: ArcSwapOption::empty(),
            journal: None,
            writing: Mutex::default(),
        }
    }

    /// The same with every call written down before it is made and after. Nothing is called that cannot be.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>, owner: impl Into<String>) -> Self {
        self.journal = Some((journal, owner.into()));
        self
    }

    /// What is served.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The hub behind it.
    pub fn hub(&self) -> &Arc<ToolHub> {
        &self.hub
    }

    /// How many tools are offered now, whatever is shown of them.
    pub fn tools(&self) -> usize {
        self.offer().tools.len()
    }

    /// Everything that is offered now, whatever is shown of it.
    fn offer(&self) -> Arc<Offer> {
        if let Some(offer) = self.current_offer() {
            return offer;
        }
        // One of those who wait makes it for all.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.new_offer()
    }

    fn current_offer(&self) -> Option<Arc<Offer>> {
        let offer = self.offer.load();
        let offer = offer.as_ref().filter(|offer| self.hub.is_current(&offer.snapshot))?;
        Some(Arc::clone(offer))
    }

    /// Only for whoever holds `writing`.
    fn new_offer(&self) -> Arc<Offer> {
        if let Some(offer) = self.current_offer() {
            return offer;
        }
        let offer = Arc::new(Offer::of(self.hub.snapshot(), &self.profile));
        self.offer.store(Some(Arc::clone(&offer)));
        offer
    }

    /// The catalogue in this form. The pointer and the number stay while no tool changed.
    fn written(&self, form: Form) -> Arc<Catalogue> {
        let place = match form {
            Form::Full => &self.full,
            Form::Search => &self.search,
        };
        if let Some(written) = place.load().as_ref().filter(|written| self.hub.is_current(&written.of)) {
            return Arc::clone(&written.catalogue);
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let offer = self.new_offer();
        let before = place.load();
        let version = match before.as_ref() {
            Some(written) if Arc::ptr_eq(&written.of, &offer.snapshot) => {
                return Arc::clone(&written.catalogue);
            }
            Some(written) => written.catalogue.version + 2,
            None => form.first_version(),
        };
        let tools = form.tools(&offer);
        let catalogue = match before.as_ref() {
            Some(written) if written.catalogue.tools == tools => Arc::clone(&written.catalogue),
            _ => Arc::new(Catalogue { version, tools }),
        };
        let written = Written { of: Arc::clone(&offer.snapshot), catalogue: Arc::clone(&catalogue) };
        place.store(Some(Arc::new(written)));
        catalogue
    }

    fn options(&self, call: &ServiceCall) -> CallOptions {
        CallOptions {
            timeout: self.profile.timeout,
            budget: self.profile.budget,
            who: Arc::clone(&call.who),
            caller: call.caller.clone(),
            keep_form: true,
            judged: None,
            profile: (!self.profile.is_open()).then(|| Arc::clone(&self.profile)),
            trail: None,
            watch: None,
            request: None,
        }
    }

    async fn execute(&self, request: &ToolCallRequest, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        let options = self.options(call);
        // A name without a dot is a tool's own: the hub finds it without a table.
        if !request.tool_name.contains('.') {
            return self.carry_out(request, &options).await;
        }
        let offer = self.offer();
        let offering = offer.find(&request.tool_name).ok_or_else(|| unknown(&request.tool_name, &offer))?;
        self.carry_out(&offering.request(request), &options).await
    }

    async fn carry_out(
        &self,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        match &self.journal {
            None => self.hub.execute(request, options).await,
            Some((journal, owner)) => {
                Box::pin(self.hub.execute_journalled(&**journal, owner, request, options)).await
            }
        }
    }

    /// The tools of a request, as far as they are offered here.
    async fn search(&self, request: &ToolCallRequest) -> Result<ToolOutput, ToolError> {
        let wish = finding::wish(request)?;
        self.hub.ready_to_search().await;
        let (hub, offer) = (Arc::clone(&self.hub), self.offer());
        let searched = tokio::task::spawn_blocking(move || {
            let found = search(&hub, &offer, &wish);
            finding::found(&wish.query, &found, &offer)
        });
        searched.await.map_err(|_| ToolError::new(ErrorKind::Internal, "the search panicked"))
    }

    fn described(&self, name: &str) -> Option<OfferedTool> {
        let offer = self.offer();
        words::own_tool(name, &offer).or_else(|| offer.find(name).map(Offering::listed))
    }

    fn description(&self, request: &ToolCallRequest) -> Result<ToolOutput, ToolError> {
        let name = finding::wanted_name(request)?;
        let offer = self.offer();
        let offering = offer.find(&name).ok_or_else(|| unknown(&name, &offer))?;
        Ok(ToolOutput::text(offering.listed().definition.get()).sized())
    }
}

impl ToolService for HubService {
    fn catalogue(&self, viewer: &Viewer) -> Arc<Catalogue> {
        let searches = match self.profile.surface {
            Surface::Full => false,
            Surface::Search => true,
            Surface::Auto => automatic(viewer.client.as_deref(), self.offer().weight),
        };
        self.written(if searches { Form::Search } else { Form::Full })
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, u64> {
        let mut changes = self.hub.changes();
        Box::pin(async move {
            loop {
                changes.borrow_and_update();
                let now = self.written(Form::of(seen)).version;
                if now != seen {
                    return now;
                }
                if changes.changed().await.is_err() {
                    // The hub is gone, and we with it.
                    return std::future::pending().await;
                }
            }
        })
    }

    fn describe(&self, name: &str) -> Option<RawJson> {
        self.described(name).map(|tool| tool.definition)
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match call.request.tool_name.as_str() {
                SEARCH_TOOLS => self.search(&call.request).await,
                DESCRIBE_TOOL => self.description(&call.request),
                CALL_TOOL => {
                    let inner = finding::inner_call(&call.request)?;
                    if RESERVED.contains(&inner.tool_name.as_str()) {
                        return Err(unknown(&inner.tool_name, &self.offer()));
                    }
                    self.execute(&inner, call).await
                }
                _ => self.execute(&call.request, call).await,
            }
        })
    }
}

impl Form {
    fn of(version: u64) -> Self {
        if version.is_multiple_of(2) { Self::Full } else { Self::Search }
    }

    fn first_version(self) -> u64 {
        match self {
            Self::Full => 2,
            Self::Search => 1,
        }
    }

    fn tools(self, offer: &Offer) -> Vec<OfferedTool> {
        match self {
            Self::Full => offer.listed(),
            Self::Search => words::own_tools(offer),
        }
    }
}

impl fmt::Debug for HubService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubService").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// What is offered of what a search finds. More is looked for where much of it is not offered.
fn search<'a>(hub: &ToolHub, offer: &'a Offer, wish: &finding::Wish) -> Vec<&'a Offering> {
    let mut limit = wish.limit;
    loop {
        let hits = hub.search(&wish.query, limit);
        let mut tools: Vec<&Offering> = Vec::with_capacity(wish.limit);
        for hit in &hits {
            // Copies are found together: whichever is offered here stands for all.
            let copies = std::iter::once(&hit.tool).chain(&hit.same);
            let offered = copies.into_iter().find_map(|tool| offer.offering_of(tool));
            let is_new = |offered: &&Offering| !tools.iter().any(|known| std::ptr::eq(*known, *offered));
            tools.extend(offered.filter(is_new));
        }
        if tools.len() >= wish.limit || hits.len() < limit || limit > 1000 {
            tools.truncate(wish.limit);
            return tools;
        }
        limit *= 4;
    }
}

/// An unknown name, with those that may have been meant.
fn unknown(name: &str, offer: &Offer) -> ToolError {
    let error = ToolError::new(ErrorKind::UnknownTool, format!("tool `{name}` does not exist"));
    let near = did_you_mean(offer.tools.iter().map(|tool| (&*tool.name, Shape::of(&tool.name))), name);
    if near.is_empty() { error } else { error.with_hint(format!("did you mean {}?", listed(&near))) }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;

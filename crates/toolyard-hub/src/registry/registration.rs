//! Building the candidates of sources that are registered.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use toolyard_core::{CapabilityTable, QuarantineNotice, SourceId, Tool};

use crate::{
    registry::candidate::{RegisteredSource, ToolCandidate},
    routing::rules::RoutingRules,
};

/// The candidates of fewer sources are built by the calling thread alone.
const MIN_SOURCES_FOR_THREADS: usize = 64;

/// Result of registering a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// Number of registered tools.
    pub tools: usize,
    /// Names that other sources also have; see [`Snapshot::collisions`](crate::Snapshot::collisions).
    pub collisions: Vec<Arc<str>>,
    /// Rejected tools with the reason.
    pub rejected: Vec<(Arc<str>, String)>,
}

/// Rules from the settings that candidates are built with.
#[derive(Debug)]
pub(super) struct RegistrationRules {
    pub(super) routing: RoutingRules,
    pub(super) capabilities: CapabilityTable,
}

/// A source whose candidates are to be built.
pub(super) enum PreparedSource {
    New { source: Arc<RegisteredSource>, tools: Vec<Arc<dyn Tool>>, quarantined: Vec<QuarantineNotice> },
    Rejected(Registration),
}

/// A source with its candidates.
pub(super) struct BuiltSource {
    pub(super) source: Arc<RegisteredSource>,
    pub(super) candidates: Vec<Arc<ToolCandidate>>,
    pub(super) quarantined: Vec<QuarantineNotice>,
    pub(super) registration: Registration,
}

impl RegistrationRules {
    /// Builds the candidates of all sources, in this order. Uses several threads for many sources: a start with thousands of tools
    /// waits for this.
    pub(super) fn build_candidates(
        &self,
        sources: Vec<PreparedSource>,
    ) -> Vec<Result<BuiltSource, Registration>> {
        let build = |source| match source {
            PreparedSource::Rejected(registration) => Err(registration),
            PreparedSource::New { source, tools, quarantined } => {
                let mut registration = Registration::default();
                let candidates = self.candidates(&source, tools, &mut registration);
                Ok(BuiltSource { source, candidates, quarantined, registration })
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        if sources.len() < MIN_SOURCES_FOR_THREADS || threads == 1 {
            return sources.into_iter().map(build).collect();
        }
        let (count, waiting) = (sources.len(), Mutex::new(sources.into_iter().enumerate()));
        let finished = Mutex::new(Vec::with_capacity(count));
        let build_waiting = || {
            let mut built = Vec::new();
            loop {
                // Not in the condition of the loop, where the lock would be held until its end.
                let next = waiting.lock().next();
                let Some((at, source)) = next else { break };
                built.push((at, build(source)));
            }
            finished.lock().extend(built);
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Without another thread, this one builds all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, build_waiting);
            }
            build_waiting();
        });
        let mut finished = finished.into_inner();
        finished.sort_unstable_by_key(|(at, _)| *at);
        finished.into_iter().map(|(_, built)| built).collect()
    }

    pub(super) fn candidates(
        &self,
        source: &Arc<RegisteredSource>,
        tools: Vec<Arc<dyn Tool>>,
        registration: &mut Registration,
    ) -> Vec<Arc<ToolCandidate>> {
        let mut names = HashSet::with_capacity(tools.len());
        let mut candidates = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = Arc::clone(&tool.spec().name);
            if let Some(problem) = name_problem(&name) {
                registration.rejected.push((name, problem.to_owned()));
            } else if !names.insert(Arc::clone(&name)) {
                registration
                    .rejected
                    .push((name, "the source lists this name twice; the first one is used".to_owned()));
            } else {
                candidates.push(Arc::new(ToolCandidate::new(
                    source,
                    tool,
                    &self.routing,
                    &self.capabilities,
                )));
            }
        }
        source.state.retain_tools(|tool| names.contains(tool));
        candidates
    }
}

/// Why a tool cannot have this name.
fn name_problem(name: &str) -> Option<&'static str> {
    let poses_as_text = |letter: char| letter.is_whitespace() || "()[]{}<>（）［］｛｝【】".contains(letter);
    if name.is_empty() {
        Some("a tool needs a name")
    } else if name.contains('@') {
        Some("the name contains `@`, which separates a tool from its source in rules")
    } else if name.contains(poses_as_text) {
        Some(
            "the name contains a space or a bracket, so that it could pose as the text around it where calls are approved",
        )
    } else {
        None
    }
}

/// Rejects every tool of a source with a reserved id.
pub(super) fn reject_reserved_id(id: &SourceId, tools: &[Arc<dyn Tool>]) -> Registration {
    let reason = format!("the source id `{id}` is reserved for native tools; give the source another id");
    let mut names: Vec<Arc<str>> = tools.iter().map(|tool| Arc::clone(&tool.spec().name)).collect();
    if names.is_empty() {
        names.push(id.as_str().into());
    }
    let rejected = names.into_iter().map(|name| (name, reason.clone())).collect();
    Registration { rejected, ..Registration::default() }
}

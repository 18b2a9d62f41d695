//! Runs `--describe` of all programs within one time limit, and at most once per content of a skill.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use toolyard_core::{ContentHash, SkillDescriptionCache};

use super::{
    description::{CachedDescription, Description},
    program_tool::Program,
};

const MAX_CONCURRENT_PROGRAMS: usize = 8;

/// A program whose tools are needed.
pub(in crate::skill) struct DescribeRequest {
    pub(in crate::skill) program: Arc<Program>,
    /// The key in the description cache; without one, the program runs at every load.
    pub(in crate::skill) cache_key: Option<ContentHash>,
    /// The program's index within its skill: the first programs of all skills run before the second ones, so that a
    /// skill with many programs does not delay the others.
    pub(in crate::skill) index: usize,
}

/// Why the tools of a program are not known.
#[derive(Debug, thiserror::Error)]
pub(in crate::skill) enum DiscoveryError {
    /// The skill is not trusted, so its programs are not started.
    ///
    /// Remedy: review the folder, then trust it: `toolyard skills trust NAME`.
    #[error("the program was not run")]
    NotRun,
    /// Other programs took the time for descriptions.
    ///
    /// Remedy: run the command again; programs should answer `--describe` at once.
    #[error("no time left after describing other programs; retried at the next load")]
    NoTimeLeft,
    /// A program of a skill could not be described this time; the text says why.
    ///
    /// Remedy: run `PROGRAM --describe` by hand.
    #[error("{0}; retried at the next load")]
    Temporary(String),
    /// A program of a skill does not describe itself; the text says why.
    ///
    /// Remedy: run `PROGRAM --describe` by hand, and correct the program; a file that is no tool should not be
    /// executable.
    #[error("{0}; retried when the skill changes")]
    Permanent(String),
}

pub(in crate::skill) type DescribeResult = Result<Description, DiscoveryError>;

/// The descriptions of all programs, in the order of the requests. Takes hardly longer than `time_limit`.
pub(in crate::skill) async fn describe_all(
    requests: Vec<DescribeRequest>,
    cache: Arc<dyn SkillDescriptionCache>,
    time_limit: Duration,
) -> Vec<DescribeResult> {
    let lookups = requests.into_iter().map(|request| {
        let cache = Arc::clone(&cache);
        async move { (look_up(&request, &*cache).await, request) }
    });
    let cached: Vec<(Option<DescribeResult>, DescribeRequest)> =
        stream::iter(lookups).buffered(MAX_CONCURRENT_PROGRAMS).collect().await;
    let (mut results, mut uncached) = (Vec::new(), Vec::new());
    for (position, (result, request)) in cached.into_iter().enumerate() {
        if result.is_none() {
            uncached.push((position, request));
        }
        results.push(result);
    }
    uncached.sort_by_key(|(_, request)| request.index);
    let deadline = Instant::now() + time_limit;
    let runs = uncached.into_iter().map(|(position, request)| {
        let cache = Arc::clone(&cache);
        async move { (position, describe(&request, &*cache, deadline, time_limit).await) }
    });
    // Unordered, so that a program that hangs does not delay those after it.
    let mut runs = stream::iter(runs).buffer_unordered(MAX_CONCURRENT_PROGRAMS);
    while let Some((position, result)) = runs.next().await {
        if let Some(slot) = results.get_mut(position) {
            *slot = Some(result);
        }
    }
    let not_run = || Err(DiscoveryError::NotRun);
    results.into_iter().map(|result| result.unwrap_or_else(not_run)).collect()
}

/// The cached description for the current content of the skill.
async fn look_up(request: &DescribeRequest, cache: &dyn SkillDescriptionCache) -> Option<DescribeResult> {
    let entry = cache.description(request.cache_key.as_ref()?).await?;
    let Some(cached) = CachedDescription::parse(&entry) else {
        let program = request.program.path.display();
        tracing::warn!(%program, "ignoring an invalid cached description");
        return None;
    };
    Some(match cached {
        CachedDescription::Tools(description) => Ok(description),
        CachedDescription::Failed(message) => Err(DiscoveryError::Permanent(message)),
    })
}

/// Runs the program and caches its description or its failure.
async fn describe(
    request: &DescribeRequest,
    cache: &dyn SkillDescriptionCache,
    deadline: Instant,
    time_limit: Duration,
) -> DescribeResult {
    let time_left = deadline.saturating_duration_since(Instant::now());
    if time_left.is_zero() {
        return Err(DiscoveryError::NoTimeLeft);
    }
    match request.program.describe(deadline).await {
        Ok(description) => {
            if let (Some(key), Some(entry)) = (&request.cache_key, description.to_cache_entry()) {
                cache.put_description(key, &entry).await;
            }
            Ok(description)
        }
        Err(failure) => {
            // A timeout is the program's fault only if it did not have to wait long for others.
            let is_permanent = failure.is_permanent && (!failure.timed_out || time_left >= time_limit / 2);
            let Some(key) = request.cache_key.filter(|_| is_permanent) else {
                return Err(DiscoveryError::Temporary(failure.message));
            };
            cache.put_description(&key, &CachedDescription::failure_entry(&failure.message)).await;
            Err(DiscoveryError::Permanent(failure.message))
        }
    }
}

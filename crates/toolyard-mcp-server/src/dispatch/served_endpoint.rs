//! [`ServedEndpoint`]: an endpoint with its encoded tool lists and its subscriptions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolyard_core::ClientInfo;

use crate::{
    content_service::ContentKinds,
    dispatch::tool_list::{EncodedCatalogue, ToolListCache},
    endpoint::Endpoint,
};

/// An endpoint and its state.
#[derive(Debug)]
pub(crate) struct ServedEndpoint {
    /// Empty for the main endpoint.
    pub(crate) profile: String,
    pub(crate) services: Endpoint,
    lists: ToolListCache,
    /// Subscribers per resource URI.
    subscribed: Mutex<HashMap<String, usize>>,
}

impl ServedEndpoint {
    pub(crate) fn new(profile: String, services: Endpoint) -> Self {
        Self { profile, services, lists: ToolListCache::default(), subscribed: Mutex::default() }
    }

    /// The catalogue of tools that a client gets.
    pub(crate) fn catalogue(&self, client: &ClientInfo) -> Arc<EncodedCatalogue> {
        self.lists.get(self.services.tools.catalogue(client))
    }

    /// The kinds of content that any service has.
    pub(crate) fn content_kinds(&self) -> ContentKinds {
        self.services.content.iter().fold(ContentKinds::default(), |all, content| {
            let one = content.kinds();
            ContentKinds {
                prompts: all.prompts | one.prompts,
                resources: all.resources | one.resources,
                subscriptions: all.subscriptions | one.subscriptions,
                completions: all.completions | one.completions,
                skills: all.skills | one.skills,
                logging: all.logging | one.logging,
            }
        })
    }

    /// Whether any content can change.
    pub(crate) fn has_content_changes(&self) -> bool {
        self.services.content.iter().any(|content| content.events().is_some())
    }

    /// Adds a subscriber; returns whether it is the first.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let mut subscribed = self.subscribed();
        let count = subscribed.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes a subscriber; returns whether it was the last.
    pub(crate) fn unsubscribe(&self, uri: &str) -> bool {
        let mut subscribed = self.subscribed();
        let Some(count) = subscribed.get_mut(uri) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            subscribed.remove(uri);
        }
        is_last
    }

    fn subscribed(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

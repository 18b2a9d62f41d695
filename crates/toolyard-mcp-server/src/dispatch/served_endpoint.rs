//! [`ServedEndpoint`]: an endpoint with its encoded tool lists and its subscriptions.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;
use toolyard_core::ClientInfo;

use crate::{
    content_service::ContentCapabilities,
    dispatch::tool_list::{EncodedCatalogue, ToolListCache},
    endpoint::Endpoint,
};

#[derive(Debug)]
pub(crate) struct ServedEndpoint {
    /// Empty for the main endpoint.
    pub(crate) profile: String,
    pub(crate) services: Endpoint,
    tool_lists: ToolListCache,
    /// Subscribers per resource URI.
    subscriber_counts: Mutex<HashMap<String, usize>>,
    /// Set when another endpoint takes its place.
    retired: watch::Sender<bool>,
}

impl ServedEndpoint {
    pub(crate) fn new(profile: String, services: Endpoint) -> Self {
        Self {
            profile,
            services,
            tool_lists: ToolListCache::default(),
            subscriber_counts: Mutex::default(),
            retired: watch::Sender::new(false),
        }
    }

    /// Ends the streams of the endpoint; requests in flight finish.
    pub(crate) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Completes when the endpoint is retired.
    pub(crate) fn retired(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut retired = self.retired.subscribe();
        async move {
            if retired.wait_for(|retired| *retired).await.is_err() {
                // The endpoint is gone without being retired: the server was dropped.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The catalogue of tools that a client gets.
    pub(crate) fn catalogue(&self, client: &ClientInfo) -> Arc<EncodedCatalogue> {
        self.tool_lists.get(self.services.tools.catalogue(client))
    }

    pub(crate) fn content_capabilities(&self) -> ContentCapabilities {
        self.services.content.iter().fold(ContentCapabilities::default(), |all, content| {
            let one = content.capabilities();
            ContentCapabilities {
                prompts: all.prompts | one.prompts,
                resources: all.resources | one.resources,
                subscriptions: all.subscriptions | one.subscriptions,
                completions: all.completions | one.completions,
                skills: all.skills | one.skills,
                logging: all.logging | one.logging,
            }
        })
    }

    pub(crate) fn has_content_changes(&self) -> bool {
        self.services.content.iter().any(|content| content.events().is_some())
    }

    /// Adds a subscriber; returns whether it is the first.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let mut subscriber_counts = self.subscriber_counts.lock();
        let count = subscriber_counts.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes a subscriber; returns whether it was the last.
    pub(crate) fn unsubscribe(&self, uri: &str) -> bool {
        let mut subscriber_counts = self.subscriber_counts.lock();
        let Some(count) = subscriber_counts.get_mut(uri) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            subscriber_counts.remove(uri);
        }
        is_last
    }
}

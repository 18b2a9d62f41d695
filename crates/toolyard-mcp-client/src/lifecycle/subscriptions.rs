//! Which resources of a server have subscribers.

use std::collections::{BTreeMap, BTreeSet};

pub(super) const MAX_SUBSCRIBED_RESOURCES: usize = 10_000;

/// The subscribers of each resource of one server, by URI.
#[derive(Debug, Default)]
pub(super) struct ResourceSubscriptions(BTreeMap<String, BTreeSet<u64>>);

impl ResourceSubscriptions {
    /// Adds a subscriber. Returns whether it is the first one of this resource; none if there are too many resources.
    pub(super) fn add(&mut self, subscriber: u64, uri: &str) -> Option<bool> {
        if self.0.len() >= MAX_SUBSCRIBED_RESOURCES && !self.0.contains_key(uri) {
            return None;
        }
        let subscribers = self.0.entry(uri.to_owned()).or_default();
        Some(subscribers.insert(subscriber) && subscribers.len() == 1)
    }

    /// Removes a subscriber. Returns whether it was the last one of this resource.
    pub(super) fn remove(&mut self, subscriber: u64, uri: &str) -> bool {
        let Some(subscribers) = self.0.get_mut(uri) else { return false };
        subscribers.remove(&subscriber);
        let is_unused = subscribers.is_empty();
        if is_unused {
            self.0.remove(uri);
        }
        is_unused
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn uris(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_subscriber_are_reported() {
        let mut subscriptions = ResourceSubscriptions::default();
        let mut add = |subscriber| subscriptions.add(subscriber, "note://a").unwrap();
        assert!(add(1) && !add(2) && !add(1));
        assert!(!subscriptions.remove(3, "note://b"));
        assert!(!subscriptions.remove(1, "note://a") && subscriptions.remove(2, "note://a"));
        assert!(subscriptions.is_empty());
    }
}

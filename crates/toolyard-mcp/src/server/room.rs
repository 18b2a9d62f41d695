//! What is behind one door, and what was written down of it so that it need not be written again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolyard_core::Viewer;

use super::{
    ContentKinds, Door,
    tool_list::{ToolLists, WrittenCatalogue},
};

/// A door with its name.
#[derive(Debug)]
pub(super) struct Room {
    /// Empty for the main door.
    pub(super) profile: String,
    pub(super) door: Door,
    lists: ToolLists,
    /// How many clients want to hear of a resource.
    subscribed: Mutex<HashMap<String, usize>>,
}

impl Room {
    pub(super) fn new(profile: String, door: Door) -> Self {
        Self { profile, door, lists: ToolLists::default(), subscribed: Mutex::default() }
    }

    /// The tools as this client sees them.
    pub(super) fn catalogue(&self, viewer: &Viewer) -> Arc<WrittenCatalogue> {
        self.lists.of(self.door.tools.catalogue(viewer))
    }

    /// Which kinds of content there are behind this door.
    pub(super) fn kinds(&self) -> ContentKinds {
        self.door.content.iter().fold(ContentKinds::default(), |all, content| {
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

    /// Whether anything of the content ever changes.
    pub(super) fn content_changes(&self) -> bool {
        self.door.content.iter().any(|content| content.events().is_some())
    }

    /// One more wants to hear of a resource; true for the first.
    pub(super) fn subscribe(&self, uri: &str) -> bool {
        let mut subscribed = self.subscribed();
        let count = subscribed.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// One less; true for the last.
    pub(super) fn unsubscribe(&self, uri: &str) -> bool {
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

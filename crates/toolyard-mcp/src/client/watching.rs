//! Which resources of a server are followed, by whom, and what the server is told of that in its era.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::sleep;
use toolyard_core::ProtocolEra;

use super::{
    ConnectError, RequestError, Server, Session,
    server::{Wanted, locked},
    subscription::{self, Interest},
};
use crate::wire::JsonObject;

/// How long a server may take to take note of something.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an old subscription goes on beside the new one.
const OVERLAP: Duration = Duration::from_millis(500);
/// More resources of one server are not followed.
const MOST_WATCHED: usize = 10_000;

/// The resources of one server that are followed, and who follows each.
#[derive(Debug, Default)]
pub(super) struct Watched(BTreeMap<String, BTreeSet<u64>>);

impl Watched {
    /// Whether nobody followed it before.
    fn add(&mut self, follower: u64, address: &str) -> Result<bool, AskError> {
        if self.0.len() >= MOST_WATCHED && !self.0.contains_key(address) {
            return Err(AskError::TooMany);
        }
        let followers = self.0.entry(address.to_owned()).or_default();
        Ok(followers.insert(follower) && followers.len() == 1)
    }

    /// Whether nobody follows it any more.
    fn remove(&mut self, follower: u64, address: &str) -> bool {
        let Some(followers) = self.0.get_mut(address) else { return false };
        followers.remove(&follower);
        let last = followers.is_empty();
        if last {
            self.0.remove(address);
        }
        last
    }

    fn addresses(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// Why something could not be asked of a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// It is not there.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It did not answer, or with an error.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Too many resources of it are followed already.
    #[error("{MOST_WATCHED} of its resources are followed already")]
    TooMany,
}

impl Server {
    /// A live session, which is started if need be; a server that failed a moment ago is left alone.
    pub async fn connect(self: &Arc<Self>) -> Result<Arc<Session>, ConnectError> {
        self.session(Wanted::Call).await
    }

    /// Follows a resource for as long as this server is configured, in whichever session.
    pub async fn watch(self: &Arc<Self>, follower: u64, address: &str) -> Result<(), AskError> {
        let session = self.connect().await?;
        let first = locked(&self.watched).add(follower, address)?;
        if !first {
            return Ok(());
        }
        let asked = self.tell_watched(&session, "resources/subscribe", address).await;
        if asked.is_err() {
            locked(&self.watched).remove(follower, address);
        }
        asked.map_err(Into::into)
    }

    /// Does not follow a resource any more.
    pub async fn unwatch(self: &Arc<Self>, follower: u64, address: &str) -> Result<(), AskError> {
        if locked(&self.watched).remove(follower, address)
            && let Some(session) = self.live()
        {
            self.tell_watched(&session, "resources/unsubscribe", address).await?;
        }
        Ok(())
    }

    /// Whether any of its resources is followed.
    pub(super) fn is_watched(&self) -> bool {
        !locked(&self.watched).0.is_empty()
    }

    async fn tell_watched(
        &self,
        session: &Session,
        method: &'static str,
        address: &str,
    ) -> Result<(), RequestError> {
        match session.era() {
            ProtocolEra::Legacy => {
                let fields = JsonObject::new().with_text("uri", address);
                session.request(method, Some(address), fields, Some(PATIENCE)).await.map(drop)
            }
            ProtocolEra::Modern => {
                session.follow(locked(&self.watched).addresses());
                Ok(())
            }
        }
    }

    /// Tells a new session what is followed and how much it shall write into its log.
    pub(super) fn welcome(self: &Arc<Self>, session: &Arc<Session>) {
        let (level, addresses) = (self.common.log_level(), locked(&self.watched).addresses());
        if level.is_none() && addresses.is_empty() {
            return;
        }
        let (server, session) = (Arc::clone(self), Arc::clone(session));
        tokio::spawn(async move {
            if let Some(level) = level {
                session.set_log_level(&level).await;
            }
            for address in addresses {
                if let Err(error) = server.tell_watched(&session, "resources/subscribe", &address).await {
                    tracing::warn!(server = %server.config.id, address, %error, "not followed any more");
                }
            }
        });
    }
}

impl Session {
    /// Follows these resources and no others, in the modern era.
    fn follow(&self, addresses: Vec<String>) {
        let following = (!addresses.is_empty()).then(|| {
            let interest = Interest::Resources(addresses);
            tokio::spawn(subscription::follow(Arc::clone(&self.parts), interest)).abort_handle()
        });
        let mut current = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *current, following);
        // The new one begins before the old one ends, so that nothing is missed in between.
        if let Some(former) = former {
            tokio::spawn(async move {
                sleep(OVERLAP).await;
                former.abort();
            });
        }
    }

    /// From which level on a server of the legacy era writes log messages, if it writes any.
    pub(super) async fn set_log_level(&self, level: &str) {
        if self.era() == ProtocolEra::Modern || !self.about().capabilities.logging {
            return;
        }
        let fields = JsonObject::new().with_text("level", level);
        if let Err(error) = self.request("logging/setLevel", None, fields, Some(PATIENCE)).await {
            tracing::debug!(server = %self.parts.server, %error, "the level of its log was not set");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_hears_of_the_first_follower_and_of_the_last() {
        let mut watched = Watched::default();
        let mut add = |follower| watched.add(follower, "note://a").unwrap();
        assert!(add(1) && !add(2) && !add(1));
        assert!(!watched.remove(3, "note://b"));
        assert!(!watched.remove(1, "note://a") && watched.remove(2, "note://a"));
        assert!(watched.addresses().is_empty());
    }
}

//! Which servers behind a door are not ready, and when all of them were looked at once.

use toolyard_core::BoxFuture;

use super::{Upstreams, upstreams::note};
use crate::server::Readiness;

impl Readiness for Upstreams {
    /// Ends once every server whose tools nobody knew was started, or was found not to be there.
    fn settled(&self) -> BoxFuture<'_, ()> {
        let mut settled = self.settled.clone();
        // An error means that nobody looks any more.
        Box::pin(async move { drop(settled.wait_for(|settled| *settled).await) })
    }

    /// One line for each server that is down or unknown, and why.
    fn notes(&self) -> Vec<String> {
        self.shared.servers().iter().filter_map(|server| note(server)).collect()
    }
}

//! Which servers behind a door are not ready, and when all of them were looked at once.

use super::{Upstreams, upstreams::note};

impl Upstreams {
    /// Ends once every server whose tools nobody knew was started, or was found not to be there.
    pub async fn settled(&self) {
        // An error means that nobody looks any more.
        let _ = self.settled.clone().wait_for(|settled| *settled).await;
    }

    /// One line for each server that is down or unknown, and why.
    pub fn notes(&self) -> Vec<String> {
        self.shared.servers().iter().filter_map(|server| note(server)).collect()
    }
}

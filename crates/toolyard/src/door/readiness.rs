//! Who of the servers behind a door is not there yet.

use std::sync::Arc;

use toolyard_core::BoxFuture;
use toolyard_mcp::{bridge::Upstreams, server::Readiness};

/// The servers behind one door.
#[derive(Debug)]
pub(super) struct Behind(pub(super) Arc<Upstreams>);

impl Readiness for Behind {
    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.settled())
    }

    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }
}

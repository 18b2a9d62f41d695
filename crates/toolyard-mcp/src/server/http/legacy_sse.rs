//! The transport of the first revision: one stream of events, and an address to send messages to.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::mpsc;

use super::{
    super::{McpServer, duplex::Duplex, room::Room, seal::random},
    HttpConfig,
    body::{Beat, LegacyEvents},
};

/// Messages that may wait on one stream.
const WAITING: usize = 256;

/// The conversations that are open.
#[derive(Debug, Default)]
pub(super) struct LegacyStreams {
    open: Mutex<HashMap<String, Weak<Duplex>>>,
}

/// One conversation's place among those that are open.
#[derive(Debug)]
pub(super) struct Open {
    streams: Arc<LegacyStreams>,
    name: String,
}

impl LegacyStreams {
    /// Begins a conversation: its stream, which says first where messages go.
    pub(super) fn begin(
        self: &Arc<Self>,
        server: &Arc<McpServer>,
        room: &Arc<Room>,
        principal: [u8; 32],
        config: &HttpConfig,
    ) -> Option<LegacyEvents> {
        let (out, messages) = mpsc::channel(WAITING);
        let duplex = Arc::new(Duplex::new(Arc::clone(server), Arc::clone(room), principal, out));
        // Whoever knows the name can speak in this conversation: it must not be guessed.
        let mut name = [0; 16];
        random(&mut name)?;
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        self.lock().insert(name.clone(), Arc::downgrade(&duplex));
        let profile = if room.profile.is_empty() { String::new() } else { format!("/{}", room.profile) };
        let endpoint = format!("event: endpoint\ndata: /messages{profile}?sessionId={name}\n\n");
        let mut stopped = server.stopped();
        let open = Open { streams: Arc::clone(self), name };
        Some(LegacyEvents {
            first: Some(endpoint.into()),
            messages,
            beat: Beat::new(config.stream_beat),
            stopped: Box::pin(async move { stopped.wait().await }),
            _conversation: (duplex, open),
        })
    }

    /// The conversation of this name at this door.
    pub(super) fn find(&self, name: &str, room: &Arc<Room>) -> Option<Arc<Duplex>> {
        self.lock().get(name).and_then(Weak::upgrade).filter(|duplex| duplex.is_at(room))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Duplex>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.name);
    }
}

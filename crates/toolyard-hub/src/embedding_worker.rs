//! Computes the embeddings of indexed tools on a thread of its own, so that neither start-up nor a search waits for them.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
    time::{Duration, Instant},
};

use toolyard_search::{SearchIndex, embedding::Embedder};

/// Texts that are embedded before the index takes over their embeddings.
const TEXTS_PER_ROUND: usize = 96;
/// Embeddings are saved this often while more are computed.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// Whether a thread is computing embeddings of an index.
#[derive(Debug, Default)]
pub(crate) struct EmbeddingWorker {
    shared: Arc<WorkerState>,
}

#[derive(Debug, Default)]
struct WorkerState {
    is_running: Mutex<bool>,
    finished: Condvar,
}

impl EmbeddingWorker {
    /// Starts the thread unless it is running or no tool of the index lacks embeddings.
    pub(crate) fn start_if_needed(&self, index: &Arc<RwLock<SearchIndex>>) {
        let embedder = {
            let index = read(index);
            match index.embedder() {
                Some(embedder) if index.tools_to_embed() > 0 => Arc::clone(embedder),
                _ => return,
            }
        };
        let mut is_running = self.shared.is_running();
        if *is_running {
            return;
        }
        let (index, shared) = (Arc::clone(index), Arc::clone(&self.shared));
        let work = move || {
            let _guard = PanicGuard(&shared);
            compute(&index, &embedder, &shared);
        };
        match std::thread::Builder::new().name("tool-embeddings".to_owned()).spawn(work) {
            Ok(_) => *is_running = true,
            Err(error) => tracing::warn!(%error, "failed to start a thread; tools are searched by words"),
        }
    }

    /// Waits until the embeddings of all indexed tools are there. Returns whether they are.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let is_running = self.shared.is_running();
        let waited = self.shared.finished.wait_timeout_while(is_running, timeout, |is_running| *is_running);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Marks a thread that panics as finished, so that no caller waits for it.
struct PanicGuard<'a>(&'a WorkerState);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.finish(self.0.is_running());
        }
    }
}

impl WorkerState {
    fn is_running(&self) -> MutexGuard<'_, bool> {
        self.is_running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, mut is_running: MutexGuard<'_, bool>) {
        *is_running = false;
        self.finished.notify_all();
    }
}

fn compute(index: &RwLock<SearchIndex>, embedder: &Embedder, shared: &WorkerState) {
    if !embedder.open() {
        return shared.finish(shared.is_running());
    }
    let mut saved_at = Instant::now();
    loop {
        // Most embeddings are known from an earlier process.
        index.write().unwrap_or_else(PoisonError::into_inner).take_known_embeddings();
        let mut texts = read(index).texts_to_embed(TEXTS_PER_ROUND);
        if texts.is_empty() {
            embedder.save();
            let is_running = shared.is_running();
            // Tools that are indexed after this line start another thread.
            texts = read(index).texts_to_embed(TEXTS_PER_ROUND);
            if texts.is_empty() {
                return shared.finish(is_running);
            }
        }
        embedder.embed(&texts);
        if saved_at.elapsed() > SAVE_INTERVAL {
            embedder.save();
            saved_at = Instant::now();
        }
    }
}

fn read(index: &RwLock<SearchIndex>) -> RwLockReadGuard<'_, SearchIndex> {
    index.read().unwrap_or_else(PoisonError::into_inner)
}

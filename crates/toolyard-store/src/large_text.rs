//! Redacts and compresses large texts on threads of low priority, so that the calls of others do not wait.

use std::{
    sync::{LazyLock, mpsc},
    thread,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::StoreError;

/// Work on longer texts takes milliseconds. That on shorter ones costs less than a change of threads.
const MAX_INLINE_BYTES: usize = 64 << 10;
/// Threads for large texts at most.
const MAX_THREADS: usize = 4;
/// How much less of a processor these threads get than others, as `nice` counts.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// The queue of the threads; none if no thread could be started.
static QUEUE: LazyLock<Option<mpsc::Sender<Job>>> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::channel();
    let receiver = &*Box::leak(Box::new(Mutex::new(receiver)));
    // At least half of the processors stay free.
    let threads = thread::available_parallelism().map_or(1, usize::from).div_euclid(2).clamp(1, MAX_THREADS);
    let started = (0..threads).filter(|_| {
        let builder = thread::Builder::new().name("large-texts".to_owned());
        builder.spawn(|| run_jobs(receiver)).is_ok()
    });
    (started.count() > 0).then_some(sender)
});

/// Runs the jobs of the queue one after the other, for as long as the process lives.
fn run_jobs(queue: &Mutex<mpsc::Receiver<Job>>) {
    // On Linux this is a property of the thread. Elsewhere it would slow down the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICENESS);
    loop {
        let job = queue.lock().recv();
        let Ok(job) = job else { return };
        // A job that panics drops its sender, which its caller reports as an error.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

/// Whether work on a text of this length needs a thread of its own.
pub(crate) fn is_large(bytes: usize) -> bool {
    bytes > MAX_INLINE_BYTES
}

/// Runs work on a large text on one of the threads for that.
pub(crate) async fn on_other_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (sender, receiver) = oneshot::channel();
    let job: Job = Box::new(move || {
        // Nobody waits any more if the call was given up.
        if !sender.is_closed() {
            let _ = sender.send(work());
        }
    });
    let is_queued = QUEUE.as_ref().is_some_and(|queue| queue.send(job).is_ok());
    let failed = |reason: &str| StoreError::Database(format!("failed to redact a large text: {reason}"));
    if !is_queued {
        return Err(failed("no thread could be started"));
    }
    receiver.await.map_err(|_| failed("its thread panicked"))?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::{Instant, sleep};
    use toolyard_core::{
        ContentHash, DataOwner, FinishedStep, Journal, RawJson, Results, RunLog, StepIntent, StepState,
    };

    use super::*;
    use crate::{location::Location, store::Store};

    /// How long work takes, and the longest time in which the only thread of the runtime did nothing else.
    async fn stall_during<T>(work: impl Future<Output = T>) -> (Duration, Duration) {
        let started = Instant::now();
        let (mut last, mut longest) = (started, Duration::ZERO);
        let mut work = std::pin::pin!(work);
        loop {
            let is_done = tokio::select! {
                biased;
                _ = &mut work => true,
                () = sleep(Duration::from_millis(1)) => false,
            };
            longest = longest.max(last.elapsed());
            last = Instant::now();
            if is_done {
                return (started.elapsed(), longest);
            }
        }
    }

    #[tokio::test]
    async fn storing_a_large_text_full_of_secrets_stalls_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
        let run = store.create_run("test", &RawJson::empty_object()).await.unwrap();
        let lease = store.claim(&run, "one", Duration::from_secs(600)).await.unwrap();
        let intent = StepIntent {
            step: "a".to_owned(),
            tool: "read".to_owned(),
            source: None,
            definition: ContentHash::of("definition"),
            arguments: ContentHash::of("arguments"),
            redacted_arguments: "{}".to_owned(),
            repeatable: true,
        };
        store.begin(&lease, &intent).await.unwrap();
        // The redaction rules are built before the measurement.
        let secret = "token=hunter2secret ";
        store.store(secret, DataOwner::Operator).await.unwrap();

        let text = secret.repeat(20_000);
        let event = RawJson::from(json!({ "text": text }));
        let outcome = FinishedStep { state: StepState::Done, result: event.clone() };
        let stalls = [
            ("result", stall_during(async { store.store(&text, DataOwner::Operator).await.unwrap() }).await),
            ("outcome", stall_during(async { store.finish(&lease, "a", &outcome).await.unwrap() }).await),
            ("event", stall_during(async { store.append(&lease, 0, &event).await.unwrap() }).await),
        ];
        for (what, (duration, longest)) in stalls {
            assert!(longest < duration / 2, "{what}: {longest:?} of {duration:?}");
        }
    }

    #[tokio::test]
    async fn other_tasks_run_during_work_on_a_large_text() {
        let (sender, receiver) = mpsc::channel();
        let work = on_other_thread(move || {
            receiver.recv_timeout(Duration::from_secs(10)).map_err(|_| StoreError::Closed)
        });
        // On the only thread of this runtime: it sends only if the work does not block it.
        let other = async {
            tokio::task::yield_now().await;
            sender.send(7).unwrap();
        };
        let (worked, ()) = tokio::join!(work, other);
        assert_eq!(worked, Ok(7));
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_affects_no_other_work() {
        for _ in 0..=MAX_THREADS {
            let failed: Result<(), _> = on_other_thread(|| panic!("as intended")).await;
            assert!(failed.unwrap_err().to_string().contains("its thread panicked"));
        }
        assert_eq!(on_other_thread(|| Ok(7)).await, Ok(7));
    }
}

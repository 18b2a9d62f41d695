//! A process that is meant to be killed: it journals a sequence of steps against a ledger, for the tests of the journal.
//!
//! `ledger PORT_FILE LOG_FILE` records every call it really receives, whatever becomes of the caller.
//! `steps STORE RUN LEDGER OWNER LEASE_MS KILL_AT PAUSE_MS` works through the steps of a run, and kills itself at a point.
//! `flood STORE RUN` writes steps as fast as it can and says which ones were acknowledged.

#![expect(clippy::unwrap_used, reason = "a process made for tests")]

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use toolyard_core::{
    Begun, ContentHash, Intent, Journal, JournalError, Lease, RawJson, RunId, RunState, StepOutcome,
    StepState, idempotency_key,
};
use toolyard_store::{Location, Store};

/// How many steps a run has.
const STEPS: usize = 20;
/// The exit code of a worker that met a step whose outcome is unknown.
const UNKNOWN: u8 = 5;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match words.as_slice() {
        ["ledger", port_file, log_file] => ledger(Path::new(port_file), Path::new(log_file)),
        ["steps", store, run, ledger, owner, lease, kill_at, pause] => runtime.block_on(
            Worker {
                store: store_at(store),
                run: RunId::from(*run),
                ledger: (*ledger).to_owned(),
                owner: (*owner).to_owned(),
                lease: Duration::from_millis(lease.parse().unwrap()),
                kill_at: (*kill_at).to_owned(),
                pause: pause.parse().unwrap(),
            }
            .work(),
        ),
        ["flood", store, run] => runtime.block_on(flood(store_at(store), RunId::from(*run))),
        _ => ExitCode::FAILURE,
    }
}

fn store_at(address: &str) -> Location {
    Location::parse(address, Path::new("/"))
}

/// Tells its test something, at once.
fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{words}");
    let _ = out.flush();
}

/// One line per call, on disk before the caller hears of it.
fn ledger(port_file: &Path, log_file: &Path) -> ExitCode {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    std::fs::write(port_file, listener.local_addr().unwrap().to_string()).unwrap();
    let log = std::sync::Arc::new(std::sync::Mutex::new(std::fs::File::create(log_file).unwrap()));
    for caller in listener.incoming().flatten() {
        let log = std::sync::Arc::clone(&log);
        std::thread::spawn(move || {
            let mut caller = BufReader::new(caller);
            let mut call = String::new();
            if caller.read_line(&mut call).is_ok() && call.ends_with('\n') {
                log.lock().unwrap().write_all(call.as_bytes()).unwrap();
                let _ = caller.get_mut().write_all(b"ok\n");
            }
        });
    }
    ExitCode::SUCCESS
}

struct Worker {
    store: Location,
    run: RunId,
    ledger: String,
    owner: String,
    lease: Duration,
    kill_at: String,
    pause: u64,
}

impl Worker {
    async fn work(self) -> ExitCode {
        let store = Store::open(self.store.clone()).await.unwrap();
        loop {
            let Some(lease) = self.claimed(&store).await else { return ExitCode::SUCCESS };
            match self.all_steps(&store, &lease).await {
                Ok(true) => {
                    if store.release(&lease, RunState::Done).await.is_ok() {
                        say("done");
                    }
                    return ExitCode::SUCCESS;
                }
                Ok(false) => return ExitCode::from(UNKNOWN),
                Err(JournalError::LeaseLost(_)) => say(&format!("lost {}", lease.fence)),
                Err(error) => {
                    say(&format!("failed {error}"));
                    return ExitCode::FAILURE;
                }
            }
        }
    }

    /// The run, as soon as nobody holds it; nothing when it is over.
    async fn claimed(&self, store: &Store) -> Option<Lease> {
        loop {
            if store.run(&self.run).await.unwrap().state != RunState::Open {
                return None;
            }
            match store.claim(&self.run, &self.owner, self.lease).await {
                Ok(lease) => return Some(lease),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// Whether all steps are over; `false` when one waits for a person.
    async fn all_steps(&self, store: &Store, lease: &Lease) -> Result<bool, JournalError> {
        for step in 0..STEPS {
            // Every third step may be repeated; all others have an effect.
            let repeatable = self.pause > 0 || step % 3 == 2;
            let intent = Intent {
                step: format!("{step:02}"),
                tool: "record".to_owned(),
                source: Some("ledger".into()),
                definition: ContentHash::of("record"),
                arguments: ContentHash::of(step.to_le_bytes()),
                shown_arguments: "{}".to_owned(),
                repeatable,
            };
            self.point("before-begin", step);
            match store.begin(lease, &intent).await? {
                Begun::Call => self.call(store, lease, &intent, step).await?,
                Begun::Reuse(_) => {}
                Begun::Unknown(_) => {
                    say(&format!("unknown {}", intent.step));
                    return Ok(false);
                }
            }
            store.renew(lease, self.lease).await?;
        }
        Ok(true)
    }

    async fn call(
        &self,
        store: &Store,
        lease: &Lease,
        intent: &Intent,
        step: usize,
    ) -> Result<(), JournalError> {
        self.point("after-begin", step);
        self.maybe_sleep().await;
        let mut ledger = TcpStream::connect(&self.ledger).unwrap();
        let key = idempotency_key(&self.run, &intent.step);
        let _ = writeln!(ledger, "{} {} {} {key}", self.run, intent.step, self.owner);
        self.point("after-send", step);
        let mut answer = String::new();
        BufReader::new(ledger).read_line(&mut answer).unwrap();
        self.point("after-answer", step);
        self.maybe_sleep().await;
        let outcome = StepOutcome {
            state: StepState::Done,
            outcome: RawJson::from(
                serde_json::json!({"step": intent.step, "by": self.owner, "fence": lease.fence}),
            ),
        };
        store.finish(lease, &intent.step, &outcome).await?;
        say(&format!("finished {} {}", intent.step, lease.fence));
        self.point("after-finish", step);
        Ok(())
    }

    /// Kills this process, as `kill -9` would, if this is the point it was told to die at.
    fn point(&self, name: &str, step: usize) {
        if self.kill_at == format!("{name}:{step}") {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            std::thread::sleep(Duration::from_secs(60));
        }
    }

    /// Now and then sleeps longer than a lease lasts, as a process does whose machine was suspended.
    async fn maybe_sleep(&self) {
        if self.pause > 0 && fastrand::u8(..) < 24 {
            // The whole process stops: no heartbeat, no other task.
            std::thread::sleep(Duration::from_millis(fastrand::u64(self.pause..self.pause * 3)));
        }
    }
}

/// Sixty-four writers that never stop; each acknowledged step is said.
async fn flood(location: Location, run: RunId) -> ExitCode {
    let store = Store::open(location).await.unwrap();
    let lease = loop {
        match store.claim(&run, &format!("flood-{}", std::process::id()), Duration::from_millis(1)).await {
            Ok(lease) => break lease,
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    };
    let lease = std::sync::Arc::new(lease);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..64 {
        let (store, lease) = (store.clone(), std::sync::Arc::clone(&lease));
        writers.spawn(async move {
            for number in 0.. {
                let step = format!("{}-{writer}-{number}", lease.fence);
                let intent = Intent {
                    step: step.clone(),
                    tool: "record".to_owned(),
                    source: None,
                    definition: ContentHash::of(""),
                    arguments: ContentHash::of(""),
                    shown_arguments: "x".repeat(500),
                    repeatable: false,
                };
                if store.begin(&lease, &intent).await.is_err() {
                    return;
                }
                say(&format!("began {step}"));
                let outcome = StepOutcome { state: StepState::Done, outcome: RawJson::empty_object() };
                if store.finish(&lease, &step, &outcome).await.is_err() {
                    return;
                }
                say(&format!("finished {step}"));
            }
        });
    }
    writers.join_all().await;
    ExitCode::SUCCESS
}

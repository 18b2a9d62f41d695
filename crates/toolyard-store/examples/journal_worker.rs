//! A process for crash tests: it journals a sequence of steps and reports every call to a ledger.
//!
//! - `ledger PORT_FILE LOG_FILE` records every call it receives, even if the caller dies.
//! - `steps STORE RUN LEDGER OWNER LEASE_MS KILL_AT PAUSE_MS` executes the steps of a run. It kills itself at
//!   the point `KILL_AT` (`NAME:STEP`), and pauses at times for at least `PAUSE_MS`, if not 0.
//! - `audit STORE` appends to the audit log as fast as possible.
//! - `flood STORE RUN` writes steps as fast as possible and prints the acknowledged ones.

#![expect(clippy::unwrap_used, reason = "a test process")]

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use toolyard_core::{
    AuditRecord, ContentHash, FinishedStep, Journal, JournalError, Lease, RawJson, RunId, RunState,
    StepIntent, StepStart, StepState, idempotency_key,
};
use toolyard_store::{Location, Store};

const STEPS_PER_RUN: usize = 20;
/// A pause is made if a random byte is below this: about one time in eleven.
const PAUSE_THRESHOLD: u8 = 24;
const FLOOD_WRITERS: usize = 64;
/// The exit code after a step whose outcome is unknown.
const EXIT_UNKNOWN: u8 = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match arguments.as_slice() {
        ["ledger", port_file, log_file] => ledger(Path::new(port_file), Path::new(log_file)),
        ["steps", store, run, ledger, owner, lease_ms, kill_at, pause_ms] => runtime.block_on(
            Worker {
                store: parse_location(store),
                run: RunId::from(*run),
                ledger: (*ledger).to_owned(),
                owner: (*owner).to_owned(),
                lease_duration: Duration::from_millis(lease_ms.parse().unwrap()),
                kill_at: (*kill_at).to_owned(),
                pause_ms: pause_ms.parse().unwrap(),
            }
            .execute(),
        ),
        ["audit", store] => runtime.block_on(append_records(parse_location(store))),
        ["flood", store, run] => runtime.block_on(flood(parse_location(store), RunId::from(*run))),
        _ => ExitCode::FAILURE,
    }
}

fn parse_location(text: &str) -> Location {
    Location::parse(text, Path::new("/"))
}

/// Prints a line for the test, unbuffered.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Logs one line per call to disk before it responds.
fn ledger(port_file: &Path, log_file: &Path) -> ExitCode {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    std::fs::write(port_file, listener.local_addr().unwrap().to_string()).unwrap();
    let log = std::sync::Arc::new(parking_lot::Mutex::new(std::fs::File::create(log_file).unwrap()));
    for connection in listener.incoming().flatten() {
        let log = std::sync::Arc::clone(&log);
        std::thread::spawn(move || {
            let mut connection = BufReader::new(connection);
            let mut call = String::new();
            if connection.read_line(&mut call).is_ok() && call.ends_with('\n') {
                log.lock().write_all(call.as_bytes()).unwrap();
                let _ = connection.get_mut().write_all(b"ok\n");
            }
        });
    }
    ExitCode::SUCCESS
}

async fn append_records(store: Location) -> ExitCode {
    let store = Store::open(store).await.unwrap();
    let record = AuditRecord::refused(0, 1, "a record");
    loop {
        store.append_audit(vec![record.clone(); 200]).await.unwrap();
    }
}

struct Worker {
    store: Location,
    run: RunId,
    ledger: String,
    owner: String,
    lease_duration: Duration,
    kill_at: String,
    pause_ms: u64,
}

impl Worker {
    async fn execute(self) -> ExitCode {
        let store = Store::open(self.store.clone()).await.unwrap();
        loop {
            let Some(lease) = self.claim(&store).await else { return ExitCode::SUCCESS };
            match self.execute_steps(&store, &lease).await {
                Ok(true) => {
                    if store.release(&lease, RunState::Done).await.is_ok() {
                        print_line("done");
                    }
                    return ExitCode::SUCCESS;
                }
                Ok(false) => return ExitCode::from(EXIT_UNKNOWN),
                Err(JournalError::LeaseLost(_)) => print_line(&format!("lost {}", lease.fence)),
                Err(error) => {
                    print_line(&format!("failed {error}"));
                    return ExitCode::FAILURE;
                }
            }
        }
    }

    /// Claims the run as soon as it is free; `None` once it is finished.
    async fn claim(&self, store: &Store) -> Option<Lease> {
        loop {
            if store.run(&self.run).await.unwrap().state != RunState::Open {
                return None;
            }
            match store.claim(&self.run, &self.owner, self.lease_duration).await {
                Ok(lease) => return Some(lease),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// Executes all steps; returns `false` if one is unknown.
    async fn execute_steps(&self, store: &Store, lease: &Lease) -> Result<bool, JournalError> {
        for step in 0..STEPS_PER_RUN {
            // Every third step is repeatable, the others have side effects; with pauses all are repeatable.
            let repeatable = self.pause_ms > 0 || step % 3 == 2;
            let intent = StepIntent {
                step: format!("{step:02}"),
                tool: "record".to_owned(),
                source: Some("ledger".into()),
                definition: ContentHash::of("record"),
                arguments: ContentHash::of(step.to_le_bytes()),
                redacted_arguments: "{}".to_owned(),
                repeatable,
            };
            self.die_at("before-begin", step);
            match store.begin(lease, &intent).await? {
                StepStart::Call => self.call(store, lease, &intent, step).await?,
                StepStart::Reuse(_) => {}
                StepStart::Unknown(_) => {
                    print_line(&format!("unknown {}", intent.step));
                    return Ok(false);
                }
            }
            store.renew(lease, self.lease_duration).await?;
        }
        Ok(true)
    }

    async fn call(
        &self,
        store: &Store,
        lease: &Lease,
        intent: &StepIntent,
        step: usize,
    ) -> Result<(), JournalError> {
        self.die_at("after-begin", step);
        self.maybe_pause().await;
        let mut ledger = TcpStream::connect(&self.ledger).unwrap();
        let key = idempotency_key(&self.run, &intent.step);
        let _ = writeln!(ledger, "{} {} {} {key}", self.run, intent.step, self.owner);
        self.die_at("after-send", step);
        let mut response = String::new();
        BufReader::new(ledger).read_line(&mut response).unwrap();
        self.die_at("after-answer", step);
        self.maybe_pause().await;
        let outcome = FinishedStep {
            state: StepState::Done,
            result: RawJson::from(
                serde_json::json!({"step": intent.step, "by": self.owner, "fence": lease.fence}),
            ),
        };
        store.finish(lease, &intent.step, &outcome).await?;
        print_line(&format!("finished {} {}", intent.step, lease.fence));
        self.die_at("after-finish", step);
        Ok(())
    }

    /// Kills this process with SIGKILL if this is the configured point.
    fn die_at(&self, name: &str, step: usize) {
        if self.kill_at == format!("{name}:{step}") {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            std::thread::sleep(Duration::from_secs(60));
        }
    }

    /// Pauses at times for at least `pause_ms`, which tests choose longer than the lease, like a process on a suspended
    /// machine.
    async fn maybe_pause(&self) {
        if self.pause_ms > 0 && fastrand::u8(..) < PAUSE_THRESHOLD {
            // The lease is not renewed meanwhile.
            std::thread::sleep(Duration::from_millis(fastrand::u64(self.pause_ms..self.pause_ms * 3)));
        }
    }
}

/// Writes steps concurrently without end and prints each acknowledged step.
async fn flood(location: Location, run: RunId) -> ExitCode {
    let store = Store::open(location).await.unwrap();
    // Expires at once, so that the next process can claim the run as soon as this one is killed. Until another process claims
    // the run, the holder of an expired lease may still write.
    let lease = loop {
        match store.claim(&run, &format!("flood-{}", std::process::id()), Duration::from_millis(1)).await {
            Ok(lease) => break lease,
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    };
    let lease = std::sync::Arc::new(lease);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..FLOOD_WRITERS {
        let (store, lease) = (store.clone(), std::sync::Arc::clone(&lease));
        writers.spawn(async move {
            for number in 0.. {
                let step = format!("{}-{writer}-{number}", lease.fence);
                let intent = StepIntent {
                    step: step.clone(),
                    tool: "record".to_owned(),
                    source: None,
                    definition: ContentHash::of(""),
                    arguments: ContentHash::of(""),
                    redacted_arguments: "x".repeat(500),
                    repeatable: false,
                };
                if store.begin(&lease, &intent).await.is_err() {
                    return;
                }
                print_line(&format!("began {step}"));
                let outcome = FinishedStep { state: StepState::Done, result: RawJson::empty_object() };
                if store.finish(&lease, &step, &outcome).await.is_err() {
                    return;
                }
                print_line(&format!("finished {step}"));
            }
        });
    }
    writers.join_all().await;
    ExitCode::SUCCESS
}

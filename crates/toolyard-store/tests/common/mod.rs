//! A fresh store on either engine for each test.

#![expect(dead_code, reason = "each test binary uses a part of it")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic in a test helper fails the test, as intended"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::{Connection as _, Executor as _};
use toolyard_core::{ContentHash, RawJson, StepIntent};
use toolyard_store::{Engine, Location, Store};

/// A fresh location. The SQLite file is deleted with the test; a PostgreSQL database stays until the test server is removed.
pub(crate) struct TestStore {
    pub(crate) location: Location,
    folder: Option<tempfile::TempDir>,
}

impl TestStore {
    pub(crate) async fn new(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                Self { location: Location::Sqlite(folder.path().join("toolyard.db")), folder: Some(folder) }
            }
            Engine::Postgres => Self { location: Location::Postgres(new_database().await), folder: None },
        }
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(self.location.clone()).await.unwrap()
    }

    /// The database as other programs open it.
    pub(crate) fn url(&self) -> String {
        match &self.location {
            Location::Sqlite(path) => format!("sqlite://{}", path.display()),
            Location::Postgres(url) => url.clone(),
        }
    }

    /// The location as another process takes it on its command line.
    pub(crate) fn to_argument(&self) -> String {
        match &self.location {
            Location::Sqlite(path) => path.to_str().unwrap().to_owned(),
            Location::Postgres(address) => address.clone(),
        }
    }
}

/// The URL of the PostgreSQL server for tests. Without one the tests fail instead of passing half-checked.
fn postgres_url() -> String {
    std::env::var("TOOLYARD_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("no PostgreSQL: run the tests with `just test` or `scripts/with-postgres cargo nextest run`")
    })
}

async fn new_database() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    sqlx::any::install_default_drivers();
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("t_{}_{nanoseconds}_{number}", std::process::id());
    let mut connection = sqlx::AnyConnection::connect(&format!("{}/postgres", postgres_url())).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
    connection.execute(sqlx::query(sql)).await.unwrap();
    format!("{}/{name}", postgres_url())
}

/// The intent of a call that must not be repeated.
pub(crate) fn write_intent(step: &str) -> StepIntent {
    StepIntent {
        step: step.to_owned(),
        tool: "write".to_owned(),
        source: Some("ledger".into()),
        definition: ContentHash::of("definition"),
        arguments: ContentHash::of("arguments"),
        redacted_arguments: "{}".to_owned(),
        repeatable: false,
    }
}

/// The intent of a call that may be repeated.
pub(crate) fn repeatable_intent(step: &str) -> StepIntent {
    StepIntent { repeatable: true, ..write_intent(step) }
}

pub(crate) fn json(value: serde_json::Value) -> RawJson {
    RawJson::from(value)
}

/// Generates each test for SQLite and for PostgreSQL.
#[macro_export]
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(toolyard_store::Engine::Sqlite).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(toolyard_store::Engine::Postgres).await;
            })*
        }
    };
}

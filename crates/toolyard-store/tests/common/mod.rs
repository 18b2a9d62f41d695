//! A fresh store on either engine for each test.

#![expect(dead_code, reason = "each test file uses a part of this")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test helper fails its test")]

use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::{Connection as _, Executor as _};
use toolyard_core::{ContentHash, Intent, RawJson};
use toolyard_store::{Engine, Location, Store};

/// A place for a store that is gone with the test.
pub(crate) struct Place {
    pub(crate) location: Location,
    folder: Option<tempfile::TempDir>,
}

impl Place {
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

    /// The address for another process.
    pub(crate) fn address(&self) -> String {
        match &self.location {
            Location::Sqlite(path) => path.to_str().unwrap().to_owned(),
            Location::Postgres(address) => address.clone(),
        }
    }
}

/// The address of the server the tests may use; without it they fail, because half of what they show is missing.
pub(crate) fn server() -> String {
    std::env::var("TOOLYARD_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("no PostgreSQL: run the tests with `just test` or `scripts/with-postgres cargo nextest run`")
    })
}

async fn new_database() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    sqlx::any::install_default_drivers();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("t_{}_{since}_{number}", std::process::id());
    let mut connection = sqlx::AnyConnection::connect(&format!("{}/postgres", server())).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
    connection.execute(sqlx::query(sql)).await.unwrap();
    format!("{}/{name}", server())
}

/// A step that is about to be called.
pub(crate) fn intent(step: &str, repeatable: bool) -> Intent {
    Intent {
        step: step.to_owned(),
        tool: "write".to_owned(),
        source: Some("ledger".into()),
        definition: ContentHash::of("definition"),
        arguments: ContentHash::of("arguments"),
        shown_arguments: "{}".to_owned(),
        repeatable,
    }
}

pub(crate) fn json(value: serde_json::Value) -> RawJson {
    RawJson::from(value)
}

/// Makes each test twice: on SQLite and on PostgreSQL.
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

//! The migrations of each engine, in the order of their numbers. A macro of sqlx would find the files by itself, and would have sqlx
//! with its databases and TLS compiled a second time for it.

use std::sync::LazyLock;

use sqlx::{
    SqlSafeStr as _,
    migrate::{Migration, MigrationType, Migrator},
};

use super::engine::Engine;

/// The files below `migrations/sqlite` and `migrations/postgres`; their names are kept in databases.
macro_rules! migrations {
    ($engine:literal) => {
        migrations!($engine:
            "0001_initial", "0002_tool_approvals", "0003_past_requests", "0004_server_content",
            "0005_run_events", "0006_result_shapes", "0007_audit_writers", "0008_conversation_owners",
            "0009_learning", "0010_agents", "0011_callers", "0012_quotas", "0013_data_owners",
            "0014_policies", "0015_quota_changes", "0016_session_leases", "0017_settings_versions",
            "0018_audit_removals", "0019_server_revisions", "0020_drop_stored_settings"
        )
    };
    ($engine:literal: $($name:literal),*) => {
        [$(($name, include_str!(concat!("../../migrations/", $engine, "/", $name, ".sql")))),*]
    };
}

static SQLITE: LazyLock<Migrator> = LazyLock::new(|| migrator(&migrations!("sqlite")));
static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| migrator(&migrations!("postgres")));

pub(super) fn migrations_of(engine: Engine) -> &'static Migrator {
    match engine {
        Engine::Sqlite => &SQLITE,
        Engine::Postgres => &POSTGRES,
    }
}

fn migrator(files: &[(&'static str, &'static str)]) -> Migrator {
    let migration = |(number, (name, sql)): (i64, &(&'static str, &'static str))| {
        let description = name.split_once('_').map_or(*name, |(_, description)| description);
        let description = description.replace('_', " ").into();
        Migration::new(number, description, MigrationType::Simple, (*sql).into_sql_str(), false)
    };
    Migrator::with_migrations((1..).zip(files).map(migration).collect())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    #[test]
    fn every_file_is_a_migration_under_its_number() {
        for (engine, files) in [("sqlite", migrations!("sqlite")), ("postgres", migrations!("postgres"))] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine);
            let entries = std::fs::read_dir(folder).unwrap();
            let on_disk: BTreeSet<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            let listed: BTreeSet<String> = files.iter().map(|(name, _)| format!("{name}.sql")).collect();
            assert_eq!(on_disk, listed, "{engine}");
            for (migration, (name, sql)) in migrator(&files).iter().zip(files) {
                assert!(name.starts_with(&format!("{:04}_", migration.version)), "{name}");
                assert!(!sql.starts_with("-- no-transaction"), "{name}");
            }
        }
    }

    /// What sqlx's macro recorded; with a difference, databases from before could not be opened.
    #[test]
    fn names_and_checksums_are_those_of_existing_databases() {
        let second = SQLITE.iter().nth(1).unwrap();
        assert_eq!((second.version, &*second.description), (2, "tool approvals"));
        assert_eq!(second.checksum.get(..4), Some(&[206, 28, 237, 196][..]));
    }
}

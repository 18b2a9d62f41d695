//! All tables and their columns, for export, import and checks.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    Integer,
    Real,
    Blob,
}

pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The columns as in `CREATE TABLE`: `name TYPE, name TYPE`.
    columns: &'static str,
}

impl Table {
    /// The names and types of the columns, in order.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&'static str, ColumnType)> {
        self.columns.split(", ").filter_map(|column| {
            let (name, type_name) = column.split_once(' ')?;
            let column_type = match type_name {
                "TEXT" => ColumnType::Text,
                "INTEGER" => ColumnType::Integer,
                "REAL" => ColumnType::Real,
                "BLOB" => ColumnType::Blob,
                _ => return None,
            };
            Some((name, column_type))
        })
    }
}

/// Every table except `audit_head`, which is derived from `audit`, `session_key`, which a new store generates, the budgets of quotas,
/// which are about the latest minutes or days, and the revisions of servers, which processes count while they run. Referenced tables come before those that refer to them.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "servers",
        columns: "id TEXT, configuration TEXT, revision_family TEXT, cached_tools TEXT, seen_at INTEGER, \
                  tool_approvals TEXT, content TEXT",
    },
    Table {
        name: "tool_definitions",
        columns: "server TEXT, tool TEXT, hash TEXT, definition TEXT, approved INTEGER, \
                  first_seen_at INTEGER",
    },
    Table { name: "trust_decisions", columns: "kind TEXT, subject TEXT, content TEXT, decided_at INTEGER" },
    Table { name: "program_descriptions", columns: "program TEXT, tools TEXT" },
    Table {
        name: "tool_statistics",
        columns: "tool TEXT, source TEXT, successes REAL, failures REAL, errors TEXT, latency BLOB, \
                  last_success INTEGER, last_failure INTEGER, updated_at INTEGER",
    },
    Table {
        name: "past_requests",
        columns: "source TEXT, tool TEXT, request TEXT, uses INTEGER, last_used_at INTEGER, owner TEXT",
    },
    Table {
        name: "argument_examples",
        columns: "owner TEXT, source TEXT, tool TEXT, definition TEXT, arguments TEXT, learned_at INTEGER",
    },
    // Written by versions before 0.2 only.
    Table {
        name: "example_requests",
        columns: "source TEXT, tool TEXT, definition TEXT, requests TEXT, model TEXT, written_at INTEGER",
    },
    Table {
        name: "result_shapes",
        columns: "source TEXT, tool TEXT, shape TEXT, learned_at INTEGER, owner TEXT",
    },
    Table { name: "results", columns: "reference TEXT, bytes INTEGER, created_at INTEGER, owner TEXT" },
    Table {
        name: "result_chunks",
        columns: "reference TEXT, number INTEGER, starts_at INTEGER, content BLOB",
    },
    Table {
        name: "messages",
        columns: "owner TEXT, conversation TEXT, number INTEGER, role TEXT, text TEXT, at INTEGER",
    },
    Table {
        name: "runs",
        columns: "id TEXT, kind TEXT, state TEXT, detail TEXT, owner TEXT, fence INTEGER, \
                  lease_until INTEGER, created_at INTEGER",
    },
    Table {
        name: "steps",
        columns: "run TEXT, step TEXT, number INTEGER, tool TEXT, source TEXT, definition TEXT, \
                  arguments TEXT, redacted_arguments TEXT, repeatable INTEGER, state TEXT, outcome BLOB, \
                  redacted INTEGER, fence INTEGER, started_at INTEGER, ended_at INTEGER",
    },
    Table { name: "run_events", columns: "run TEXT, number INTEGER, event BLOB, at INTEGER" },
    Table {
        name: "approvals",
        columns: "id INTEGER, run TEXT, step TEXT, kind TEXT, text TEXT, outcome TEXT, decided_by TEXT, \
                  requested_at INTEGER, decided_at INTEGER",
    },
    Table {
        name: "audit",
        columns: "number INTEGER, day INTEGER, at INTEGER, caller TEXT, call TEXT, tool TEXT, \
                  sources TEXT, arguments TEXT, result TEXT, outcome TEXT, milliseconds INTEGER, hash TEXT",
    },
    Table { name: "agents", columns: "name TEXT, config TEXT, updated_at INTEGER" },
    Table {
        name: "callers",
        columns: "name TEXT, key_id TEXT, secret_hash TEXT, allowed_profiles TEXT, allowed_agents TEXT, \
                  created_at INTEGER, expires_at INTEGER, revoked_at INTEGER",
    },
    Table { name: "session_leases", columns: "name TEXT, holder TEXT, fence INTEGER, lease_until INTEGER" },
    Table { name: "session_users", columns: "name TEXT, caller TEXT, fence INTEGER" },
    Table { name: "audit_writers", columns: "writer TEXT, batch INTEGER" },
    Table { name: "audit_removals", columns: "number INTEGER, hash TEXT, at INTEGER" },
    Table { name: "audit_checkpoints", columns: "number INTEGER, hash TEXT, at INTEGER" },
];

/// The tables that migration [`DROPPING_MIGRATION`] drops, with the number of the migration that created each.
pub(crate) const DROPPED_TABLES: [(&str, i64); 2] = [("policies", 14), ("settings_versions", 17)];
pub(crate) const DROPPING_MIGRATION: i64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_known_type() {
        for table in TABLES {
            assert_eq!(table.columns().count(), table.columns.split(',').count(), "{}", table.name);
        }
    }
}

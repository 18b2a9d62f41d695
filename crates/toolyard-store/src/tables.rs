//! All tables and their columns, for whatever goes through all of them.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Text,
    Integer,
    Real,
    Bytes,
}

/// A table and its columns, in an order in which rows can be written: what is referred to comes first.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Holds)],
}

use Holds::{Bytes, Integer, Real, Text};

/// Every table of the store but `audit_head`, which is written from `audit`.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "servers",
        columns: &[
            ("id", Text),
            ("configuration", Text),
            ("era", Text),
            ("cached_tools", Text),
            ("seen_at", Integer),
            ("shelf", Text),
            ("content", Text),
        ],
    },
    Table {
        name: "tool_definitions",
        columns: &[
            ("server", Text),
            ("tool", Text),
            ("hash", Text),
            ("definition", Text),
            ("approved", Integer),
            ("first_seen_at", Integer),
        ],
    },
    Table {
        name: "trust",
        columns: &[("kind", Text), ("subject", Text), ("content", Text), ("decided_at", Integer)],
    },
    Table { name: "descriptions", columns: &[("program", Text), ("tools", Text)] },
    Table {
        name: "history",
        columns: &[
            ("tool", Text),
            ("source", Text),
            ("successes", Real),
            ("failures", Real),
            ("errors", Text),
            ("latency", Bytes),
            ("last_success", Integer),
            ("last_failure", Integer),
            ("updated_at", Integer),
        ],
    },
    Table {
        name: "past_requests",
        columns: &[
            ("source", Text),
            ("tool", Text),
            ("request", Text),
            ("uses", Integer),
            ("last_used_at", Integer),
        ],
    },
    Table {
        name: "result_forms",
        columns: &[("source", Text), ("tool", Text), ("form", Text), ("learned_at", Integer)],
    },
    Table { name: "results", columns: &[("reference", Text), ("bytes", Integer), ("created_at", Integer)] },
    Table {
        name: "result_parts",
        columns: &[("reference", Text), ("part", Integer), ("starts_at", Integer), ("content", Bytes)],
    },
    Table {
        name: "messages",
        columns: &[
            ("conversation", Text),
            ("number", Integer),
            ("role", Text),
            ("text", Text),
            ("at", Integer),
        ],
    },
    Table {
        name: "runs",
        columns: &[
            ("id", Text),
            ("kind", Text),
            ("state", Text),
            ("detail", Text),
            ("owner", Text),
            ("fence", Integer),
            ("lease_until", Integer),
            ("created_at", Integer),
        ],
    },
    Table {
        name: "steps",
        columns: &[
            ("run", Text),
            ("step", Text),
            ("number", Integer),
            ("tool", Text),
            ("source", Text),
            ("definition", Text),
            ("arguments", Text),
            ("shown_arguments", Text),
            ("repeatable", Integer),
            ("state", Text),
            ("outcome", Bytes),
            ("redacted", Integer),
            ("fence", Integer),
            ("started_at", Integer),
            ("ended_at", Integer),
        ],
    },
    Table {
        name: "run_events",
        columns: &[("run", Text), ("number", Integer), ("event", Bytes), ("at", Integer)],
    },
    Table {
        name: "questions",
        columns: &[
            ("id", Integer),
            ("run", Text),
            ("step", Text),
            ("kind", Text),
            ("text", Text),
            ("answer", Text),
            ("answered_by", Text),
            ("asked_at", Integer),
            ("answered_at", Integer),
        ],
    },
    Table {
        name: "audit",
        columns: &[
            ("number", Integer),
            ("day", Integer),
            ("at", Integer),
            ("who", Text),
            ("call", Text),
            ("tool", Text),
            ("sources", Text),
            ("arguments", Text),
            ("result", Text),
            ("outcome", Text),
            ("milliseconds", Integer),
            ("hash", Text),
        ],
    },
    Table { name: "audit_checkpoints", columns: &[("number", Integer), ("hash", Text), ("at", Integer)] },
];

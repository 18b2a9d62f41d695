//! What the operator keeps in the store: agents and callers with API keys. Each change is in the audit log.

mod agents;
mod callers;

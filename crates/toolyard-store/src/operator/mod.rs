//! What the operator keeps in the store: agents, callers with API keys, policies, and settings that all gateways share. Each change
//! is in the audit log.

mod agents;
mod callers;
mod policies;
mod stored_settings;

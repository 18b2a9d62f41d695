//! Behaviour of the store on both engines: each test runs on SQLite and on a real PostgreSQL.

mod agents;
mod callers;
mod data_owners;
mod journal;
mod maintenance;
mod quotas;
mod records;
mod retention;
mod session_leases;

use std::{
    collections::HashSet,
    io::Cursor,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use sqlx::{Connection as _, Executor as _};
use toolyard_core::{
    AgentDefinitions as _, ApprovalId, ApprovalKind, ApprovalOutcome, Approvals, ArgumentExample,
    ArgumentExamples as _, Audit, AuditRecord, CallRecord, CallerStore as _, ContentHash, ConversationId,
    ConversationMessage, Conversations, DataOwner, ErrorKind, FinishedStep, History, Journal, JournalError,
    PastRequest, PastRequests, RawJson, Resolution, ResultRef, ResultShape, ResultShapes as _, Results,
    ResultsError, RevisionFamily, RunId, RunLog, RunState, ServerRecord, Servers, SkillDescriptionCache,
    SourceId, StepStart, StepState, StoredCaller, StoredDefinition, StoredKey, TrustDecision,
};
use toolyard_store::{
    AuditConfig, AuditQuery, AuditVerification, Engine, Location, ResultRetention, Retention, Store,
    StoreError, StoredAudit, StoredHistory, StoredPastRequests,
};

use agents::*;
use callers::*;
use data_owners::*;
use journal::*;
use maintenance::*;
use quotas::*;
use records::*;
use retention::*;
use session_leases::*;

use crate::common::{TestStore, json, repeatable_intent, write_intent};

crate::on_both_engines!(
    two_processes_never_get_more_than_the_budget,
    a_call_is_taken_from_all_budgets_or_from_none,
    a_budget_is_charged_and_listed,
    permits_are_shared_and_expire,
    a_repeated_charge_is_made_once,
    old_charges_of_a_budget_are_forgotten_with_the_next_one,
    a_session_lease_is_taken_renewed_and_released,
    a_session_lease_that_is_over_is_taken_with_a_larger_fence,
    session_leases_are_counted_by_subject_and_holder,
    each_fence_of_a_session_lease_has_one_holder,
    all_session_leases_of_a_holder_are_renewed_together,
    users_are_recorded_under_the_present_fence_only,
    ended_session_leases_are_purged_with_their_users,
    session_leases_survive_export_and_import,
    operations_on_session_leases_never_block_each_other_for_good,
    session_leases_behave_like_a_model,
    processes_that_open_a_new_store_at_once_all_succeed,
    a_finished_step_is_reused,
    an_interrupted_write_becomes_unknown,
    an_interrupted_read_is_repeated,
    a_step_of_an_earlier_owner_is_unknown_and_resolvable_at_once,
    runs_that_no_process_drives_are_listed,
    a_run_whose_creator_stopped_waiting_is_not_created,
    unknown_steps_are_resolved_manually,
    an_owner_with_an_expired_lease_cannot_write,
    a_lease_excludes_others_until_it_expires,
    concurrent_claims_never_share_a_run,
    a_thousand_concurrent_steps_are_all_stored,
    unknown_runs_are_rejected,
    approvals_are_decided_once,
    run_events_are_appended_in_order_under_the_lease,
    one_step_and_the_approvals_of_one_run_are_found,
    servers_and_definitions_are_stored,
    changed_servers_are_found_by_their_revisions,
    trust_and_program_descriptions_are_stored,
    results_are_paged_deduplicated_and_expire,
    agents_are_added_replaced_and_removed,
    callers_are_added_get_other_keys_and_are_revoked_for_ever,
    callers_survive_export_and_import,
    old_audit_records_are_removed_and_the_rest_stays_verifiable,
    ended_runs_are_removed_and_unclear_ones_are_kept,
    runs_are_listed_page_by_page,
    runs_of_an_owner_are_listed_page_by_page,
    conversations_are_stored_and_queried,
    messages_of_one_append_stay_together,
    history_survives_a_restart_and_decays,
    past_requests_survive_a_restart_and_are_bounded,
    result_shapes_are_replaced,
    argument_examples_are_replaced_and_belong_to_their_owner,
    the_audit_log_is_chained_and_queried,
    all_processes_get_the_session_key_of_the_first,
    statistics_of_a_failed_write_are_written_later,
    export_and_import_preserve_everything,
    reopening_changes_nothing_and_a_newer_schema_is_rejected,
    a_store_is_checked_vacuumed_and_backed_up,
    an_older_store_is_migrated,
    stored_policies_are_never_dropped_silently,
    results_are_read_by_their_owner_and_the_operator_only,
    past_requests_and_shapes_are_kept_by_owner,
    data_of_earlier_versions_is_the_operators,
);

const LEASE_DURATION: Duration = Duration::from_secs(60);

fn done_with(text: &str) -> FinishedStep {
    FinishedStep { state: StepState::Done, result: json(serde_json::json!({ "text": text })) }
}

async fn new_run(store: &Store, owner: &str) -> toolyard_core::Lease {
    let run = store.create_run("test", &RawJson::empty_object()).await.unwrap();
    store.claim(&run, owner, LEASE_DURATION).await.unwrap()
}

/// Makes a lease expire.
async fn expire_lease(store: &Store, lease: &toolyard_core::Lease) {
    store.renew(lease, Duration::ZERO).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
}

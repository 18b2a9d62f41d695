//! On whose behalf a client acts: conversations, and what is learned from its calls, are for clients with the same credential
//! that come in the same way.

use std::sync::Arc;

use toolyard_core::{
    Caller, CallerIdentity, ContentHash, ConversationId, InvalidConversationName, ServiceCall,
};

/// The owner of the conversations of `/v1` and `/runs`.
const HTTP_OWNER: &[u8] = b"http";
/// The owner of the conversations of an MCP client.
const MCP_OWNER: &[u8] = b"mcp";

/// The conversation of this name of an HTTP client.
pub(super) fn http_conversation(
    owner_hash: &[u8; 32],
    name: &str,
) -> Result<ConversationId, InvalidConversationName> {
    ConversationId::new(http_owner(owner_hash), name)
}

/// The owner of what an HTTP client begins.
pub(super) fn http_owner(owner_hash: &[u8; 32]) -> String {
    owner(HTTP_OWNER, owner_hash, "")
}

/// The conversation of this name of an MCP client.
pub(super) fn mcp_conversation(
    call: &ServiceCall,
    name: &str,
) -> Result<ConversationId, InvalidConversationName> {
    ConversationId::new(mcp_owner(call), name)
}

/// The owner of what an MCP client begins. Clients with the gateway's own token are told apart by the names they claim; other callers by
/// their subject, which stays the same when their display name changes.
pub(super) fn mcp_owner(call: &ServiceCall) -> String {
    let identity = call.caller.as_deref().and_then(Caller::identity);
    let owner_hash = call.caller.as_ref().map_or([0; 32], |caller| caller.owner_hash());
    let client = match identity.filter(|identity| identity.is_distinguished()) {
        Some(identity) => &identity.subject,
        None => &call.caller_name,
    };
    owner(MCP_OWNER, &owner_hash, client)
}

/// The identity that a run is recorded with: none for the local token, which is the user of this machine.
pub(super) fn run_identity(identity: &Arc<CallerIdentity>) -> Option<Arc<CallerIdentity>> {
    (identity.is_distinguished() || identity.is_anonymous()).then(|| Arc::clone(identity))
}

fn owner(kind: &[u8], owner_hash: &[u8; 32], client: &str) -> String {
    ContentHash::of_parts([kind, owner_hash, client.as_bytes()]).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use toolyard_core::ToolCallRequest;

    use super::*;

    proptest! {
        #[test]
        fn conversations_of_different_clients_are_never_the_same(
            one in (any::<bool>(), any::<[u8; 2]>(), ".{0,8}", "[a-c]{1,2}"),
            other in (any::<bool>(), any::<[u8; 2]>(), ".{0,8}", "[a-c]{1,2}"),
        ) {
            let id = |(is_mcp, credential, client, name): &(bool, [u8; 2], String, String)| {
                let mut hash = [0; 32];
                hash[..2].copy_from_slice(credential);
                let (kind, client) = if *is_mcp { (MCP_OWNER, client.as_str()) } else { (HTTP_OWNER, "") };
                ConversationId::new(owner(kind, &hash, client), name.as_str()).unwrap()
            };
            let is_same_client = one.0 == other.0 && one.1 == other.1 && (!one.0 || one.2 == other.2);
            prop_assert_eq!(id(&one) == id(&other), is_same_client && one.3 == other.3);
        }
    }

    #[derive(Debug)]
    struct McpCaller(Arc<CallerIdentity>);

    impl Caller for McpCaller {
        fn session_id(&self) -> u64 {
            1
        }

        fn identity(&self) -> Option<&Arc<CallerIdentity>> {
            Some(&self.0)
        }
    }

    #[test]
    fn conversations_of_a_caller_do_not_depend_on_its_display_name() {
        let conversation = |subject: &str, name: &str| {
            let mut identity = CallerIdentity::principal("https://id.example", subject);
            identity.name = name.into();
            let identity = Arc::new(identity);
            let caller_name = identity.audit_name();
            let request = ToolCallRequest::new("ask_agent", json!({}));
            let caller = Some(Arc::new(McpCaller(identity)) as _);
            mcp_conversation(&ServiceCall { request, caller, caller_name }, "c").unwrap()
        };
        assert_eq!(conversation("1", "ada"), conversation("1", "renamed"));
        assert_ne!(conversation("1", "ada"), conversation("2", "ada"));
        // As earlier versions stored it, with the subject as the name.
        let hash = CallerIdentity::principal("https://id.example", "1").owner_hash();
        assert_eq!(conversation("1", "ada"), ConversationId::new(owner(MCP_OWNER, &hash, "1"), "c").unwrap());
    }

    #[test]
    fn an_mcp_client_has_other_conversations_than_an_http_client_with_the_same_credential() {
        let request = ToolCallRequest::new("ask_agent", json!({}));
        let call = ServiceCall { request, caller: None, caller_name: "".into() };
        assert_ne!(mcp_conversation(&call, "c"), http_conversation(&[0; 32], "c"));
        assert_eq!(mcp_conversation(&call, ""), Err(InvalidConversationName));
    }
}

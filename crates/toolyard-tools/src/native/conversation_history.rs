//! `get_conversation_history`: earlier messages of the conversation.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, ConversationMessage, ConversationQuery, Conversations, ErrorKind, RawJson, Tool,
    ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
};

use crate::arguments::{read_arguments, schema_of};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConversationHistoryArguments {
    /// Only messages that contain this text
    query: Option<String>,
    /// Only messages of this role: user, assistant, tool or system
    role: Option<String>,
    /// How many at most, the latest ones; the default is 20
    limit: Option<usize>,
}

/// The tool `get_conversation_history`.
pub struct GetConversationHistory {
    spec: ToolSpec,
    conversations: Option<Arc<dyn Conversations>>,
}

impl GetConversationHistory {
    /// Creates the tool. Without a conversation, every call reports that there is none.
    pub fn new(conversations: Option<Arc<dyn Conversations>>) -> Self {
        let description =
            "Recall earlier messages of this conversation, all of them or those that contain a text";
        let spec = ToolSpec::new("get_conversation_history", description)
            .with_input_schema(schema_of::<ConversationHistoryArguments>())
            .with_hints(ToolHints { open_world: Some(false), ..ToolHints::READ_ONLY })
            .with_capability("history");
        Self { spec, conversations }
    }

    async fn recall(&self, arguments: ConversationHistoryArguments) -> Result<ToolOutput, ToolError> {
        let Some(conversations) = &self.conversations else {
            return Ok(list_messages(&[], "there is no conversation to recall"));
        };
        let non_blank = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let query = ConversationQuery {
            containing: non_blank(arguments.query),
            role: non_blank(arguments.role).map(|role| role.trim().to_lowercase()),
            limit: arguments.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
        };
        let messages = conversations.messages(&query).await.map_err(|reason| {
            ToolError::new(ErrorKind::Internal, format!("failed to read the conversation: {reason}"))
        })?;
        let text_if_empty = match (&query.containing, &query.role) {
            (None, None) => "nothing was said before",
            _ => "no earlier message matches",
        };
        Ok(list_messages(&messages, text_if_empty))
    }
}

fn list_messages(messages: &[ConversationMessage], text_if_empty: &str) -> ToolOutput {
    let lines: Vec<String> =
        messages.iter().map(|message| format!("{}: {}", message.role, message.text)).collect();
    let mut output =
        ToolOutput::text(if lines.is_empty() { text_if_empty.to_owned() } else { lines.join("\n") });
    output.structured = Some(RawJson::from_value(&json!({"messages": messages})));
    output
}

impl Tool for GetConversationHistory {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.recall(read_arguments(&request.arguments)?).await })
    }
}

impl fmt::Debug for GetConversationHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetConversationHistory").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Mutex, PoisonError},
        time::{Duration, Instant},
    };

    use serde_json::Value;
    use toolyard_core::StorageError;

    use super::*;

    /// A conversation in memory that drops the oldest messages when it is full.
    #[derive(Debug)]
    struct ConversationLog {
        messages: Mutex<VecDeque<ConversationMessage>>,
        capacity: usize,
    }

    impl ConversationLog {
        fn new(capacity: usize) -> Self {
            Self { messages: Mutex::default(), capacity: capacity.max(1) }
        }

        fn push(&self, role: impl Into<String>, text: impl Into<String>) {
            let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            if messages.len() == self.capacity {
                messages.pop_front();
            }
            messages.push_back(ConversationMessage { role: role.into(), text: text.into() });
        }
    }

    impl Default for ConversationLog {
        fn default() -> Self {
            Self::new(1_000)
        }
    }

    impl Conversations for ConversationLog {
        fn messages<'a>(
            &'a self,
            query: &'a ConversationQuery,
        ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>> {
            let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            let latest = messages.iter().rev().filter(|message| query.matches(message)).take(query.limit);
            let mut found: Vec<ConversationMessage> = latest.cloned().collect();
            found.reverse();
            Box::pin(std::future::ready(Ok(found)))
        }
    }

    async fn recall(log: Option<ConversationLog>, arguments: Value) -> String {
        let conversations = log.map(|log| Arc::new(log) as Arc<dyn Conversations>);
        let tool = GetConversationHistory::new(conversations);
        let context = CallContext::until(Instant::now() + Duration::from_secs(5));
        tool.call(&ToolCallRequest::new("h", arguments), &context).await.unwrap().to_text()
    }

    fn conversation() -> ConversationLog {
        let log = ConversationLog::new(3);
        log.push("user", "forgotten");
        log.push("user", "My name is Ada");
        log.push("assistant", "Hello Ada");
        log.push("user", "再见");
        log
    }

    #[tokio::test]
    async fn the_latest_messages_come_oldest_first() {
        assert_eq!(
            recall(Some(conversation()), json!({})).await,
            "user: My name is Ada\nassistant: Hello Ada\nuser: 再见"
        );
        assert_eq!(recall(Some(conversation()), json!({"limit": 1})).await, "user: 再见");
    }

    #[tokio::test]
    async fn messages_are_found_by_text_and_role() {
        assert_eq!(
            recall(Some(conversation()), json!({"query": "ADA", "role": "User"})).await,
            "user: My name is Ada"
        );
        assert_eq!(recall(Some(conversation()), json!({"query": "bob"})).await, "no earlier message matches");
    }

    #[tokio::test]
    async fn a_missing_or_empty_conversation_is_reported() {
        assert_eq!(recall(None, json!({})).await, "there is no conversation to recall");
        assert_eq!(recall(Some(ConversationLog::default()), json!({})).await, "nothing was said before");
    }
}

//! `get_conversation_history`: earlier messages of the conversation.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, Conversation, ConversationMessage, ConversationQuery, ErrorKind, RawJson, Tool,
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

/// The tool `get_conversation_history`. It reads the conversation of the run that calls it, and no other.
#[derive(Debug)]
pub struct GetConversationHistory {
    spec: ToolSpec,
}

impl GetConversationHistory {
    /// Creates the tool.
    pub fn new() -> Self {
        let description =
            "Recall earlier messages of this conversation, all of them or those that contain a text";
        let spec = ToolSpec::new("get_conversation_history", description)
            .with_input_schema(schema_of::<ConversationHistoryArguments>())
            .with_hints(ToolHints { open_world: Some(false), ..ToolHints::READ_ONLY })
            .with_capability("history");
        Self { spec }
    }
}

impl Default for GetConversationHistory {
    fn default() -> Self {
        Self::new()
    }
}

async fn recall(
    conversation: Option<&Conversation>,
    arguments: ConversationHistoryArguments,
) -> Result<ToolOutput, ToolError> {
    let Some(conversation) = conversation else {
        return Ok(list_messages(&[], "there is no conversation to recall"));
    };
    let non_blank = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let query = ConversationQuery {
        containing: non_blank(arguments.query),
        role: non_blank(arguments.role).map(|role| role.trim().to_lowercase()),
        limit: arguments.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
    };
    let messages = conversation.earlier_messages(&query).await.map_err(|reason| {
        ToolError::new(ErrorKind::Internal, format!("failed to read the conversation: {reason}"))
    })?;
    let text_if_empty = match (&query.containing, &query.role) {
        (None, None) => "nothing was said before",
        _ => "no earlier message matches",
    };
    Ok(list_messages(&messages, text_if_empty))
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
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let conversation = context.caller.as_ref().and_then(|caller| caller.conversation());
            recall(conversation, read_arguments(&request.arguments)?).await
        })
    }

    fn needs_conversation(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    use serde_json::Value;
    use toolyard_core::{Caller, ConversationId, Conversations, RunId, StorageError};

    use super::*;

    /// A conversation that never changes.
    #[derive(Debug)]
    struct FixedMessages(Vec<ConversationMessage>);

    impl Conversations for FixedMessages {
        fn messages<'a>(
            &'a self,
            _id: &'a ConversationId,
            _limit: usize,
        ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>> {
            Box::pin(std::future::ready(Ok(self.0.clone())))
        }

        fn append_messages<'a>(
            &'a self,
            _id: &'a ConversationId,
            _messages: &'a [ConversationMessage],
        ) -> BoxFuture<'a, Result<(), StorageError>> {
            Box::pin(std::future::ready(Err(StorageError::new("read-only"))))
        }

        fn replace_message<'a>(
            &'a self,
            _id: &'a ConversationId,
            _message: &'a ConversationMessage,
            _replacement: Option<&'a ConversationMessage>,
        ) -> BoxFuture<'a, Result<(), StorageError>> {
            Box::pin(std::future::ready(Err(StorageError::new("read-only"))))
        }
    }

    #[derive(Debug)]
    struct InConversation(Option<Conversation>);

    impl Caller for InConversation {
        fn session_id(&self) -> u64 {
            1
        }

        fn conversation(&self) -> Option<&Conversation> {
            self.0.as_ref()
        }
    }

    async fn recall(messages: Option<&[(&str, &str)]>, arguments: Value) -> String {
        let conversation = messages.map(|messages| {
            let messages = messages.iter().map(|(role, text)| ConversationMessage::new(*role, *text));
            let id = ConversationId::new("", "c").unwrap();
            Conversation::of_run(Arc::new(FixedMessages(messages.collect())), id, RunId::from("this"))
        });
        let context = CallContext::until(Instant::now() + Duration::from_secs(5))
            .with_caller(Some(Arc::new(InConversation(conversation))));
        let tool = GetConversationHistory::new();
        tool.call(&ToolCallRequest::new("h", arguments), &context).await.unwrap().to_text()
    }

    const MESSAGES: &[(&str, &str)] = &[
        ("user", "My name is Ada"),
        ("assistant", "Hello Ada"),
        ("user", "再见"),
        ("run", "another"),
        ("user", "What did I say?"),
        ("run", "this"),
    ];

    #[tokio::test]
    async fn the_latest_messages_come_oldest_first() {
        assert_eq!(
            recall(Some(MESSAGES), json!({})).await,
            "user: My name is Ada\nassistant: Hello Ada\nuser: 再见"
        );
        assert_eq!(recall(Some(MESSAGES), json!({"limit": 1})).await, "user: 再见");
    }

    #[tokio::test]
    async fn messages_are_found_by_text_and_role() {
        assert_eq!(
            recall(Some(MESSAGES), json!({"query": "ADA", "role": "User"})).await,
            "user: My name is Ada"
        );
        assert_eq!(recall(Some(MESSAGES), json!({"query": "bob"})).await, "no earlier message matches");
    }

    #[tokio::test]
    async fn a_missing_or_empty_conversation_is_reported() {
        assert_eq!(recall(None, json!({})).await, "there is no conversation to recall");
        assert_eq!(recall(Some(&[]), json!({})).await, "nothing was said before");
    }
}

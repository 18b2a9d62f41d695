//! The five native tools.
//!
//! - `calculate`: exact arithmetic with units
//! - `get_time`: the time in any zone
//! - `search_web`: web search through SearXNG, Brave or Tavily
//! - `get_conversation_history`: earlier messages
//! - `read_result`: pages of a stored result

mod calculate;
mod conversation_history;
mod get_time;
mod read_result;
pub mod search_web;

use std::sync::Arc;

use toolyard_core::{Results, Tool};

pub use calculate::Calculate;
pub use conversation_history::GetConversationHistory;
pub use get_time::{Clock, GetTime};
pub use read_result::ReadResult;
pub use search_web::{SearchSettings, SearchWeb};

/// Settings of the native tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeToolSettings {
    /// IANA time zone of `get_time` when a call names none; UTC if absent.
    pub default_timezone: Option<String>,
    /// The search engine of `search_web`.
    pub search: SearchSettings,
}

impl NativeToolSettings {
    /// Creates all five tools. Nothing is connected or read before a call.
    pub fn build(&self, results: Arc<dyn Results>) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(Calculate::new()),
            Arc::new(GetTime::new(self.default_timezone.clone())),
            Arc::new(SearchWeb::new(self.search.engine())),
            Arc::new(GetConversationHistory::new()),
            Arc::new(ReadResult::new(results)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;
    use toolyard_core::{
        BoxFuture, CallContext, DataOwner, ErrorKind, ResultPage, ResultRef, ResultsError, ToolCallRequest,
        ToolKind,
    };

    use super::*;

    struct FailingResults;

    impl Results for FailingResults {
        fn store<'a>(
            &'a self,
            _whole: &'a str,
            _owner: DataOwner,
        ) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
            Box::pin(async { Err(ResultsError::Storage("unavailable".to_owned())) })
        }

        fn read<'a>(
            &'a self,
            _reference: &'a ResultRef,
            _reader: DataOwner,
            _offset: usize,
            _limit: usize,
        ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
            Box::pin(async { Err(ResultsError::Storage("unavailable".to_owned())) })
        }
    }

    #[test]
    fn all_five_tools_are_read_only_and_of_the_right_kind() {
        let tools = NativeToolSettings::default().build(Arc::new(FailingResults));
        let kinds: Vec<(&str, ToolKind)> = tools
            .iter()
            .map(|tool| (tool.spec().name.as_ref(), ToolKind::of(&tool.spec().capabilities)))
            .collect();
        assert_eq!(
            kinds,
            [
                ("calculate", ToolKind::Calculate),
                ("get_time", ToolKind::Time),
                ("search_web", ToolKind::Search),
                ("get_conversation_history", ToolKind::History),
                ("read_result", ToolKind::Other),
            ]
        );
        assert!(tools.iter().all(|tool| tool.spec().hints.read_only == Some(true)));
        let params: Vec<usize> = tools.iter().map(|tool| tool.spec().params().len()).collect();
        assert_eq!(params, [2, 2, 2, 3, 3]);
    }

    #[tokio::test]
    async fn a_misspelt_argument_is_an_error_and_a_whole_number_is_an_integer() {
        let tools = NativeToolSettings::default().build(Arc::new(FailingResults));
        let context = CallContext::until(Instant::now() + Duration::from_secs(5));
        for tool in &tools {
            let schema = tool.spec().input_schema.to_value();
            assert_eq!(schema["additionalProperties"], json!(false), "{}", tool.spec().name);
            let mut arguments = json!({"tz": "Asia/Shanghai"});
            for required in schema["required"].as_array().into_iter().flatten() {
                arguments[required.as_str().unwrap()] = json!("1");
            }
            let request = ToolCallRequest::new(tool.spec().name.as_ref(), arguments);
            let error = tool.call(&request, &context).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{}", tool.spec().name);
            assert!(error.message().contains("unknown field `tz`"), "{}", error.message());
        }
        let request = ToolCallRequest::new("get_conversation_history", json!({"limit": 1.0}));
        assert!(tools[3].call(&request, &context).await.is_ok());
    }
}

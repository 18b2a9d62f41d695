//! `read_result`: pages of a stored result that was truncated.

use std::{
    fmt::{self, Write},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, RawJson, ResultPage, ResultRef, Results, ResultsError, Tool,
    ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
};

use crate::{
    arguments::{read_arguments, schema_of},
    text::{MAX_ECHOED_NAME_CHARS, one_line, truncate},
};

const DEFAULT_PAGE_BYTES: usize = 8_000;
const MAX_PAGE_BYTES: usize = 100_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadResultArguments {
    /// The name of the kept result, as a cut answer gives it
    reference: String,
    /// Where to begin, in bytes: the number after `next: offset` of the page before
    #[serde(default)]
    offset: usize,
    /// How many bytes at most; the default is 8,000
    limit: Option<usize>,
}

/// The tool `read_result`.
pub struct ReadResult {
    spec: ToolSpec,
    results: Arc<dyn Results>,
}

impl ReadResult {
    /// Creates the tool for these results.
    pub fn new(results: Arc<dyn Results>) -> Self {
        let description = "Read the rest of a result that was too long to be shown whole, page by page";
        let spec = ToolSpec::new("read_result", description)
            .with_input_schema(schema_of::<ReadResultArguments>())
            .with_hints(ToolHints { open_world: Some(false), ..ToolHints::READ_ONLY })
            .with_capability("read");
        Self { spec, results }
    }
}

impl Tool for ReadResult {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: ReadResultArguments = read_arguments(&request.arguments)?;
            let limit = arguments.limit.unwrap_or(DEFAULT_PAGE_BYTES).clamp(1, MAX_PAGE_BYTES);
            let reference = ResultRef::new(arguments.reference.trim());
            let read = self.results.read(&reference, context.owner, arguments.offset, limit);
            let page = read.await.map_err(|error| match error {
                ResultsError::NotFound(reference) => {
                    let name = truncate(&one_line(reference.as_str()), MAX_ECHOED_NAME_CHARS);
                    ToolError::failed(format!("there is no result `{name}`")).with_hint(
                        "copy the reference from the line of the cut answer; call the tool again if the result is gone",
                    )
                }
                other => ToolError::new(ErrorKind::Internal, other.to_string()),
            })?;
            Ok(page_output(&page))
        })
    }
}

/// The page and the offset of the next one.
fn page_output(page: &ResultPage) -> ToolOutput {
    let mut text = page.text.clone();
    if let Some(next) = page.next {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = write!(text, "next: offset {next} of {}", page.total);
    }
    let mut output = ToolOutput::text(text).exempt_from_budget();
    output.structured = RawJson::from_serialize(page).ok();
    output
}

impl fmt::Debug for ReadResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadResult").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};
    use toolyard_core::{CallerIdentity, DataOwner};

    use super::*;

    struct SingleResult(String);

    impl Results for SingleResult {
        fn store<'a>(
            &'a self,
            _whole: &'a str,
            _owner: DataOwner,
        ) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
            Box::pin(async { Ok(ResultRef::new("r_1")) })
        }

        fn read<'a>(
            &'a self,
            reference: &'a ResultRef,
            reader: DataOwner,
            offset: usize,
            limit: usize,
        ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
            Box::pin(async move {
                match reference.as_str() {
                    "r_1" if reader == DataOwner::Operator => Ok(ResultPage::of(&self.0, offset, limit)),
                    _ => Err(ResultsError::NotFound(reference.clone())),
                }
            })
        }
    }

    async fn read(whole: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let tool = ReadResult::new(Arc::new(SingleResult(whole.to_owned())));
        let context = CallContext::until(Instant::now() + Duration::from_secs(5));
        tool.call(&ToolCallRequest::new("read_result", arguments), &context).await
    }

    #[tokio::test]
    async fn results_are_read_for_the_owner_of_the_call() {
        let tool = ReadResult::new(Arc::new(SingleResult("abc".to_owned())));
        let mut context = CallContext::until(Instant::now() + Duration::from_secs(5));
        context.owner = DataOwner::of(Some(&CallerIdentity::principal("https://issuer", "eve")));
        let request = ToolCallRequest::new("read_result", json!({"reference": "r_1"}));
        let refused = tool.call(&request, &context).await.unwrap_err();
        assert!(refused.message().contains("there is no result `r_1`"), "{refused}");
    }

    #[tokio::test]
    async fn a_page_says_where_the_next_one_begins() {
        let page = read("abcdef", json!({"reference": "r_1", "offset": 2, "limit": 2})).await.unwrap();
        assert_eq!(page.to_text(), "cd\nnext: offset 4 of 6");
        let last = read("abcdef", json!({"reference": " r_1 ", "offset": 4})).await.unwrap();
        assert_eq!(last.to_text(), "ef");
    }

    #[tokio::test]
    async fn an_unknown_reference_says_what_to_do() {
        let error = read("", json!({"reference": "r_2\n\u{1b}[0m"})).await.unwrap_err();
        assert_eq!(error.message(), "there is no result `r_2`");
        assert!(error.hint().is_some());
    }

    #[tokio::test]
    async fn limits_are_kept_in_bounds() {
        let whole = "x".repeat(300_000);
        let page = read(&whole, json!({"reference": "r_1", "limit": 9_000_000})).await.unwrap();
        assert!(page.to_text().len() < MAX_PAGE_BYTES + 100);
        let zero = read("中文", json!({"reference": "r_1", "limit": 0})).await.unwrap();
        assert_eq!(zero.to_text(), "中\nnext: offset 3 of 6");
    }
}

//! `toolyard top`: what a running gateway does, live in the terminal.
//!
//! ```text
//! overview_client.rs  asks the gateway for its overview
//! overview.rs         the overview as it is shown: names sanitized, numbers as text
//! live_view.rs        the lines of the live view
//! ```

mod live_view;
mod overview;
mod overview_client;

use std::time::Duration;

use self::{live_view::View, overview::Overview, overview_client::OverviewClient};
use crate::{
    cli::TopArgs,
    config::CliContext,
    error::CliError,
    terminal::{Output, can_redraw, redraw, stdout_size},
};

const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn run(arguments: TopArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let client = OverviewClient::find(arguments.url.as_deref(), context)?;
    if output.is_json() {
        output.json(&client.overview_json().await?);
        return Ok(());
    }
    let overview = client.overview().await?;
    if arguments.once || stdout_size().is_none() || !can_redraw() {
        print_once(&overview, client.address(), output);
        return Ok(());
    }
    watch(&client, overview, arguments.interval.0.max(MIN_UPDATE_INTERVAL)).await
}

fn print_once(overview: &Overview, address: &str, output: &Output) {
    output.line(address);
    for line in overview.summary() {
        output.line(&line);
    }
    output.line("");
    output.table(overview::SOURCE_HEADINGS, overview.source_rows());
    if !overview.top_tools.is_empty() {
        output.line("");
        output.table(overview::TOOL_HEADINGS, overview.tool_rows());
    }
}

/// Shows the overview until the user interrupts. A gateway that does not answer is asked again.
async fn watch(client: &OverviewClient, overview: Overview, interval: Duration) -> Result<(), CliError> {
    let mut view = View { address: client.address().to_owned(), overview, problem: None };
    while let Some((columns, rows)) = stdout_size() {
        // The cursor is on the line below.
        redraw(view.lines((columns, rows.saturating_sub(1))));
        tokio::time::sleep(interval).await;
        match client.overview().await {
            Ok(overview) => (view.overview, view.problem) = (overview, None),
            Err(error) => view.problem = Some(error.message().to_owned()),
        }
    }
    Ok(())
}

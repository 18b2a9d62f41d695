//! Functions as tools, called through the hub: `cargo run --example function_tools`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use std::time::Duration;

use toolyard::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// How much, in euros
    amount: f64,
}

#[derive(Serialize, JsonSchema)]
struct Price {
    dollars: f64,
}

/// A function with a context reports progress, asks the user and knows its deadline.
async fn slow_convert(convert: Convert, context: ToolContext) -> Result<Json<Price>, String> {
    if convert.amount < 0.0 {
        return Err("the amount must not be negative".to_owned());
    }
    context.progress(1.0, Some(2.0), "looking up the rate");
    tokio::time::sleep(Duration::from_millis(10)).await;
    Ok(Json(Price { dollars: convert.amount * 1.08 }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let toolyard = Toolyard::builder()
        .function("to_dollars", "Convert euros to dollars", |c: Convert| async move { c.amount * 1.08 })
        .tool(function("to_price", "Convert euros to a price", slow_convert).read_only())
        .build()
        .await?;
    println!("{}", toolyard.call("to_dollars", json!({"amount": 25})).await?.to_text());
    println!("{}", toolyard.call("to_price", json!({"amount": 25})).await?.to_text());
    if let Err(Error::Call(error)) = toolyard.call("to_price", json!({"amount": -1})).await {
        println!("error: {}", error.message());
    }
    Ok(())
}

//! A function as a tool, called through the hub: `cargo run --example function_tools`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use toolyard::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// How much, in euros
    amount: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let yard = Toolyard::builder()
        .function("to_dollars", "Convert euros to dollars", |c: Convert| async move { c.amount * 1.08 })
        .build()
        .await?;
    println!("{}", yard.call("to_dollars", json!({"amount": 25})).await?.to_text());
    Ok(())
}

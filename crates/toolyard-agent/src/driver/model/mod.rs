//! Model requests: `model_io.rs` builds requests and reads replies, `model_call.rs` sends them, `answer_stream.rs` streams
//! answers, `step_view.rs` is what requests contain of steps, `answers.rs` are answers without a model, and `replies.rs`
//! turns replies into events.

mod answer_stream;
mod answers;
pub(super) mod model_call;
pub(super) mod model_io;
mod replies;
mod step_view;

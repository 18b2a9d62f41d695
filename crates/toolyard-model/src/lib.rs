//! Language models behind one small trait: a stream of text, reasoning, tool calls and usage.
//!
//! This room is still empty. Its plan: an OpenAI-compatible streaming client, the `<tool_call>` text form, a scripted
//! model and cassettes for tests. The hub already knows models by one trait only, `toolyard_core::Synthesizer`.

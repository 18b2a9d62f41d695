//! The agent pipeline: plan, execute, verify, answer.
//!
//! This room is still empty. Its plan: `PlanningAgent`, `ExecutionAgent`, `VerificationAgent` and `CoordinationAgent`
//! around a run that is a pure, serializable state machine; the prompt; the chat.

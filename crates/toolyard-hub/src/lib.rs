//! Decides and carries out one tool call.

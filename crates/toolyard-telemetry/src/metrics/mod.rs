//! Counters and histograms by the OpenTelemetry conventions for MCP and generative AI.

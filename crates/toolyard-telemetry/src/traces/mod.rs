//! Spans by the OpenTelemetry conventions for MCP and generative AI, exported over OTLP.

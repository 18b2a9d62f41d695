//! Clusters of Toolyard on NATS.

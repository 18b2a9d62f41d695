//! One door between AI agents and every tool they may use.

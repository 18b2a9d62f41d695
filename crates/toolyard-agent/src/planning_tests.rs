//! What a model is asked for a plan, in three ways and two languages, and what is made of its reply.

use super::*;

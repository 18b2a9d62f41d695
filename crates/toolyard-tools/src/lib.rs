//! Tools that live in the process: native tools, function tools and skills.

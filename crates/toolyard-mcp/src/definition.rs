//! Tool definitions: their canonical form, their pins, and how two of them differ.

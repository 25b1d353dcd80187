//! Model checks of podcache.

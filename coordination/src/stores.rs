//! The stores that Polyflake comes with.

//! The structures of rmw's, rcutils' and rosidl's C headers that cross this interface.

pub(crate) mod introspection;

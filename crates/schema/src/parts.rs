//! Data parts of a type, for people and for generated code.

use crate::Schema;
use std::fmt;

/// A liftable array of a type: it becomes a data part if it is long enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartLayout {
    /// Path of the array, with `[]` at every enclosing array: `points[].data[]`.
    pub path: String,
    /// Size of one element in the data part (natural C layout).
    pub element_size: u32,
    /// Alignment of one element in the data part.
    pub element_align: u32,
    /// Size of one element in ROS 1 form.
    pub packed_size: u32,
    /// Whether an element has padding, so that it is converted instead of copied.
    pub padded: bool,
    /// Most elements, if the type states a bound (ROS 2).
    pub bound: Option<u32>,
    /// The elements' type: `uint8`, `geometry_msgs/Point`.
    pub element_type: String,
}

impl Schema {
    /// The liftable arrays of the type, in the order of their parts.
    pub fn parts(&self) -> Vec<PartLayout> {
        let mut types = Vec::new();
        element_types(&self.inner.ty, &mut types);
        let lifts = self.inner.plan.lifts();
        lifts
            .into_iter()
            .zip(types)
            .map(|(lift, element_type)| PartLayout {
                path: self.inner.plan.path(lift.path).to_owned(),
                element_size: lift.element.natural,
                element_align: lift.element.align.into(),
                packed_size: lift.element.packed,
                padded: lift.element.padded(),
                bound: (lift.bound != u32::MAX).then_some(lift.bound),
                element_type,
            })
            .collect()
    }
}

/// The element types of the liftable arrays, in the plan's order.
fn element_types(ty: &crate::MessageType, out: &mut Vec<String>) {
    use crate::{Arity, FieldType};
    for f in ty.fields() {
        let variable = matches!(f.arity, Arity::Bounded(_) | Arity::Unbounded);
        match &f.ty {
            FieldType::Primitive(p) if variable => out.push(p.name().into()),
            FieldType::Message(m) => match &m.measure.fixed {
                Some(fixed) if variable && fixed.packed > 0 => out.push(m.name.to_string()),
                Some(_) => {}
                None => element_types(m, out),
            },
            _ => {}
        }
    }
}

impl fmt::Display for PartLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} of {} bytes",
            self.path, self.element_type, self.element_size
        )?;
        if self.padded {
            write!(f, " (padded, {} in ROS 1 form)", self.packed_size)?;
        }
        Ok(())
    }
}

//! Resolves names in definitions to types, within limits and without cycles.

use super::Registry;
use crate::definition::{Arity, Definition, RawType};
use crate::layout::lay_out;
use crate::limits::{MAX_DEPTH, MAX_FIXED, MAX_LEAVES};
use crate::types::{Field, FieldType, Measure, MessageType};
use crate::{DefinitionError, TypeName};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Resolver<'a> {
    registry: &'a Registry,
    done: BTreeMap<TypeName, Arc<MessageType>>,
    /// The types that are being resolved, outermost first.
    open: Vec<TypeName>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self {
            registry,
            done: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    /// The type named `name`.
    pub(super) fn message(
        &mut self,
        name: &TypeName,
        needed_by: Option<&TypeName>,
    ) -> Result<Arc<MessageType>, DefinitionError> {
        if let Some(done) = self.done.get(name) {
            return Ok(done.clone());
        }
        if self.open.contains(name) {
            let chain: Vec<_> = self.open.iter().chain([name]).map(TypeName::to_string).collect();
            return Err(DefinitionError::Recursive {
                name: name.to_string(),
                chain: chain.join(" > "),
            });
        }
        let def = self.registry.definition(name, needed_by)?;
        let resolved = self.root(def)?;
        self.done.insert(name.clone(), resolved.clone());
        Ok(resolved)
    }

    /// The type of a given definition.
    pub(super) fn root(&mut self, def: Definition) -> Result<Arc<MessageType>, DefinitionError> {
        let (name, folder) = (def.name, def.folder);
        if self.open.len() >= MAX_DEPTH {
            return Err(too_large(
                &name,
                "nesting",
                self.open.len() as u64 + 1,
                MAX_DEPTH as u64,
            ));
        }
        self.open.push(name.clone());
        let mut fields = Vec::with_capacity(def.fields.len());
        for raw in def.fields {
            let ty = match raw.ty {
                RawType::Primitive(p) => FieldType::Primitive(p),
                RawType::String { bound } => FieldType::String { bound },
                RawType::WString { bound } => FieldType::WString { bound },
                RawType::Named(inner) => FieldType::Message(self.message(&inner, Some(&name))?),
            };
            fields.push(Field {
                name: raw.name,
                written: raw.written,
                ty,
                arity: raw.arity,
                default: raw.default,
            });
        }
        self.open.pop();
        let measure = measure(&name, &fields)?;
        let flavour = self.registry.flavour;
        let mut constants = def.constants;
        constants.retain(|constant| fields.iter().all(|field| field.name != constant.name));
        Ok(Arc::new(MessageType {
            name,
            folder,
            flavour,
            fields,
            constants,
            sums: def.sums,
            text: def.text,
            measure,
        }))
    }
}

fn measure(name: &TypeName, fields: &[Field]) -> Result<Measure, DefinitionError> {
    let (mut depth, mut leaves, mut min_len) = (1, 1u64, 0u64);
    for field in fields {
        let (one_leaves, one_len) = match &field.ty {
            FieldType::Primitive(p) => (1, u64::from(p.size())),
            FieldType::String { .. } | FieldType::WString { .. } => (1, 4),
            FieldType::Message(m) => {
                depth = depth.max(m.measure.depth + 1);
                (m.measure.leaves, m.measure.min_len)
            }
        };
        let (l, n) = match field.arity {
            Arity::One => (one_leaves, one_len),
            Arity::Fixed(n) if matches!(field.ty, FieldType::Primitive(_)) => (1, one_len * u64::from(n)),
            Arity::Fixed(n) => (
                one_leaves.saturating_mul(n.into()),
                one_len.saturating_mul(n.into()),
            ),
            Arity::Bounded(_) | Arity::Unbounded => (one_leaves + 1, 4),
        };
        leaves = leaves.saturating_add(l);
        min_len = min_len.saturating_add(n);
    }
    if depth > MAX_DEPTH {
        return Err(too_large(name, "nesting", depth as u64, MAX_DEPTH as u64));
    }
    if leaves > MAX_LEAVES {
        return Err(too_large(
            name,
            "number of fields with all nested ones",
            leaves,
            MAX_LEAVES,
        ));
    }
    if min_len > MAX_FIXED {
        return Err(too_large(name, "fixed size in bytes", min_len, MAX_FIXED));
    }
    Ok(Measure {
        fixed: lay_out(fields).map(Arc::new),
        depth,
        leaves,
        min_len,
    })
}

fn too_large(name: &TypeName, what: &'static str, value: u64, limit: u64) -> DefinitionError {
    DefinitionError::TooLarge {
        name: name.to_string(),
        what,
        value,
        limit,
    }
}

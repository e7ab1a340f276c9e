//! A type compiled into the flat list of steps that the codecs follow.
//!
//! Nested messages are flattened, so that neighbouring fields of fixed size become one run even across message borders,
//! and a run is one copy. Lists nest only for arrays of elements of variable size. There are two lists: in `packed` a
//! run is a number of bytes, in `cdr` it is words of one size, since CDR aligns them.

use crate::definition::Arity;
use crate::layout::{Fixed, Run};
use crate::types::{FieldType, MessageType};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Plan {
    /// Steps for ROS 1 bytes and control parts.
    pub(crate) packed: Box<[Step]>,
    /// Steps for CDR.
    pub(crate) cdr: Box<[Step]>,
    /// Paths of fields for errors, with `[]` at each array; steps refer to them by index.
    pub(crate) paths: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// Bytes of fixed length: `count` words of `word` bytes. `fields` maps offsets to fields.
    Run {
        word: u8,
        count: u32,
        fields: Vec<(u32, u32)>,
    },
    /// The byte that an empty message takes in CDR, `count` times; nothing elsewhere.
    Dummy { count: u32, path: u32 },
    /// A string (`unit` 1) or wide string (`unit` 2) of at most `bound` units.
    Text { unit: u8, bound: u32, path: u32 },
    /// A fixed array of elements of variable size.
    Repeat { count: u32, body: Box<[Step]> },
    /// A variable array of elements that have variable size, or (`empty`) no content.
    List {
        bound: u32,
        empty: bool,
        path: u32,
        body: Box<[Step]>,
    },
    /// A variable array of elements of fixed size: a data part, if it is not too short.
    Lift(Lift),
}

#[derive(Debug)]
pub(crate) struct Lift {
    pub(crate) bound: u32,
    pub(crate) path: u32,
    pub(crate) element: Arc<Fixed>,
    /// [`Fixed::uniform`] of the element.
    pub(crate) uniform: Option<u8>,
}

impl Plan {
    pub(crate) fn compile(ty: &MessageType) -> Self {
        let mut paths = Vec::new();
        let mut compiler = Compiler {
            paths: &mut paths,
            cdr: false,
        };
        let mut packed = Vec::new();
        compiler.message(ty, "", &mut packed);
        compiler.cdr = true;
        let mut cdr = Vec::new();
        compiler.message(ty, "", &mut cdr);
        Self {
            packed: packed.into(),
            cdr: cdr.into(),
            paths,
        }
    }

    /// Every liftable array, in order.
    pub(crate) fn lifts(&self) -> Vec<&Lift> {
        fn add<'a>(steps: &'a [Step], out: &mut Vec<&'a Lift>) {
            for step in steps {
                match step {
                    Step::Lift(lift) => out.push(lift),
                    Step::Repeat { body, .. } | Step::List { body, .. } => add(body, out),
                    _ => {}
                }
            }
        }
        let mut out = Vec::new();
        add(&self.packed, &mut out);
        out
    }

    pub(crate) fn path(&self, index: u32) -> &str {
        self.paths.get(index as usize).map_or("message", String::as_str)
    }
}

struct Compiler<'a> {
    paths: &'a mut Vec<String>,
    cdr: bool,
}

impl Compiler<'_> {
    fn message(&mut self, ty: &MessageType, prefix: &str, out: &mut Vec<Step>) {
        if ty.fields.is_empty() {
            self.dummy(1, prefix, out);
        }
        for f in &ty.fields {
            let name = if prefix.is_empty() {
                f.name.clone()
            } else {
                format!("{prefix}.{}", f.name)
            };
            match f.arity {
                Arity::One => self.one(&f.ty, &name, out),
                Arity::Fixed(n) => self.fixed_array(&f.ty, n, &format!("{name}[]"), out),
                Arity::Bounded(n) => self.variable_array(&f.ty, n, &format!("{name}[]"), out),
                Arity::Unbounded => self.variable_array(&f.ty, u32::MAX, &format!("{name}[]"), out),
            }
        }
    }

    fn one(&mut self, ty: &FieldType, name: &str, out: &mut Vec<Step>) {
        match ty {
            FieldType::Primitive(p) => {
                let (word, count) = p.words();
                self.run(word, count, name, out);
            }
            FieldType::String { bound } => {
                let path = self.path(name);
                out.push(Step::Text {
                    unit: 1,
                    bound: bound.unwrap_or(u32::MAX),
                    path,
                });
            }
            FieldType::WString { bound } => {
                let path = self.path(name);
                out.push(Step::Text {
                    unit: 2,
                    bound: bound.unwrap_or(u32::MAX),
                    path,
                });
            }
            FieldType::Message(m) => self.message(m, name, out),
        }
    }

    fn fixed_array(&mut self, ty: &FieldType, n: u32, name: &str, out: &mut Vec<Step>) {
        match fixed(ty) {
            Some(fixed) => {
                // Merges the runs of later elements into the first run while their words match.
                for _ in 0..n {
                    if let [run] = fixed.runs.as_slice() {
                        self.run_or_dummy(
                            Run {
                                count: run.count * n,
                                ..*run
                            },
                            name,
                            out,
                        );
                        break;
                    }
                    fixed
                        .runs
                        .iter()
                        .for_each(|run| self.run_or_dummy(*run, name, out));
                }
            }
            None => {
                let mut body = Vec::new();
                self.one(ty, name, &mut body);
                out.push(Step::Repeat {
                    count: n,
                    body: body.into(),
                });
            }
        }
    }

    fn variable_array(&mut self, ty: &FieldType, bound: u32, name: &str, out: &mut Vec<Step>) {
        let path = self.path(name);
        match fixed(ty) {
            Some(element) if element.packed > 0 => {
                let uniform = element.uniform();
                out.push(Step::Lift(Lift {
                    bound,
                    path,
                    element,
                    uniform,
                }));
            }
            element => {
                let mut body = Vec::new();
                self.one(ty, name, &mut body);
                out.push(Step::List {
                    bound,
                    empty: element.is_some(),
                    path,
                    body: body.into(),
                });
            }
        }
    }

    fn run_or_dummy(&mut self, run: Run, name: &str, out: &mut Vec<Step>) {
        match run.word {
            0 => self.dummy(run.count, name, out),
            word => self.run(word, run.count, name, out),
        }
    }

    fn run(&mut self, word: u8, count: u32, name: &str, out: &mut Vec<Step>) {
        // ROS 1 bytes have no alignment, so that all words are treated as bytes.
        let (word, count) = if self.cdr {
            (word, count)
        } else {
            (1, u32::from(word) * count)
        };
        if let Some(Step::Run {
            word: w,
            count: c,
            fields,
        }) = out.last_mut()
            && *w == word
        {
            let (at, last) = (*c * u32::from(word), fields.last().map(|(_, p)| *p));
            if last.is_none_or(|p| self.paths.get(p as usize).is_none_or(|p| p != name)) {
                let path = self.path(name);
                fields.push((at, path));
            }
            *c += count;
            return;
        }
        let path = self.path(name);
        out.push(Step::Run {
            word,
            count,
            fields: vec![(0, path)],
        });
    }

    fn dummy(&mut self, count: u32, name: &str, out: &mut Vec<Step>) {
        if self.cdr {
            let path = self.path(name);
            out.push(Step::Dummy { count, path });
        }
    }

    fn path(&mut self, name: &str) -> u32 {
        if self.paths.last().is_none_or(|p| p != name) {
            self.paths.push(name.to_owned());
        }
        u32::try_from(self.paths.len() - 1).unwrap_or(u32::MAX)
    }
}

/// The layout of a type of fixed size.
fn fixed(ty: &FieldType) -> Option<Arc<Fixed>> {
    match ty {
        FieldType::Primitive(p) => {
            let (word, count) = p.words();
            Some(Arc::new(Fixed::words(word, count)))
        }
        FieldType::Message(m) => m.measure.fixed.clone(),
        FieldType::String { .. } | FieldType::WString { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flavour, Registry};

    fn shape(steps: &[Step]) -> String {
        let items: Vec<_> = steps
            .iter()
            .map(|s| match s {
                Step::Run { word, count, .. } => format!("{count}x{word}"),
                Step::Dummy { count, .. } => format!("dummy{count}"),
                Step::Text { unit, .. } => format!("text{unit}"),
                Step::Repeat { count, body } => format!("{count}*({})", shape(body)),
                Step::List { body, .. } => format!("list({})", shape(body)),
                Step::Lift(l) => format!("lift{}/{}", l.element.packed, l.element.natural),
            })
            .collect();
        items.join(" ")
    }

    #[test]
    fn fixed_fields_merge_across_messages() {
        let registry = Registry::new(Flavour::Ros1);
        let plan = |name: &str| registry.schema(name).expect("known").inner.clone();
        let odometry = plan("nav_msgs/Odometry");
        assert_eq!(shape(&odometry.plan.packed), "12x1 text1 text1 680x1");
        assert_eq!(shape(&odometry.plan.cdr), "3x4 text1 text1 85x8");
        assert_eq!(
            shape(&plan("tf2_msgs/TFMessage").plan.packed),
            "list(12x1 text1 text1 56x1)"
        );
        assert_eq!(
            shape(&plan("sensor_msgs/PointCloud2").plan.packed),
            "12x1 text1 8x1 list(text1 9x1) 9x1 lift1/1 1x1"
        );
        assert_eq!(shape(&plan("std_msgs/Empty").plan.packed), "");
        assert_eq!(shape(&plan("std_msgs/Empty").plan.cdr), "dummy1");
    }

    #[test]
    fn padding_is_seen() {
        let mut registry = Registry::new(Flavour::Ros1);
        registry
            .add_message("t/In", "uint8 a\nfloat64 b\nuint16 c")
            .expect("parses");
        registry
            .add_message(
                "t/Out",
                "In[] x\nIn[2] y\nstring[3] z\nstd_msgs/Empty[] e\nstd_msgs/Empty[4] f",
            )
            .expect("parses");
        let s = registry.schema("t/Out").expect("compiles").inner;
        assert_eq!(shape(&s.plan.packed), "lift11/24 22x1 3*(text1) list()");
        assert_eq!(
            shape(&s.plan.cdr),
            "lift11/24 1x1 1x8 1x2 1x1 1x8 1x2 3*(text1) list(dummy1) dummy4"
        );
        let lift = s.plan.lifts()[0];
        assert!(lift.element.padded() && lift.element.align == 8 && lift.uniform.is_none());
    }
}

//! Launch files of roslaunch, as far as they hold parameters: nodes with what `<param>` and `<rosparam>` give them.

use super::{ImportError, Load, MAX_FILE, Notes, check_length};
use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

/// Deepest inclusion of files in files.
const MAX_DEPTH: usize = 8;
/// Most files of one configuration, and most nodes and values in them.
const MAX_FILES: usize = 64;
const MAX_NODES: usize = 1024;
const MAX_VALUES: usize = 16_384;
/// The longest value once `$(arg …)` is replaced.
const MAX_VALUE: usize = 64 << 10;

/// A `<node>`.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) package: String,
    pub(super) kind: String,
    pub(super) params: Vec<Param>,
}

/// What a node was given.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) file: String,
    /// Where its value begins.
    pub(super) line: usize,
    /// Empty: `value` is YAML with several.
    pub(super) name: String,
    pub(super) value: String,
}

impl Node {
    /// The last `<param>` of a name.
    pub(super) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().rfind(|p| p.name == name)
    }
}

/// The nodes of a launch file and of those that it includes.
pub(super) fn nodes(
    file: &str,
    text: &str,
    notes: &mut Notes,
    load: &mut Load<'_>,
) -> Result<Vec<Node>, ImportError> {
    let mut reading = Reading {
        notes,
        load,
        nodes: Vec::new(),
        files: 0,
        values: 0,
    };
    reading.file(file, text, BTreeMap::new(), 0)?;
    Ok(reading.nodes)
}

struct Reading<'a, 'b> {
    notes: &'a mut Notes,
    load: &'a mut Load<'b>,
    nodes: Vec<Node>,
    files: usize,
    values: usize,
}

/// Where one file is read.
struct Place<'a> {
    file: &'a str,
    args: BTreeMap<String, String>,
    depth: usize,
}

/// An `<include>` whose arguments are being read.
struct Include {
    line: usize,
    named: String,
    args: BTreeMap<String, String>,
}

impl Reading<'_, '_> {
    fn too_much(&self, file: &str, what: &str, limit: usize) -> ImportError {
        ImportError::TooMuch {
            file: file.to_owned(),
            what: what.to_owned(),
            limit,
        }
    }

    fn file(
        &mut self,
        file: &str,
        text: &str,
        args: BTreeMap<String, String>,
        depth: usize,
    ) -> Result<(), ImportError> {
        check_length(file, text)?;
        self.files += 1;
        if self.files > MAX_FILES || depth > MAX_DEPTH {
            return Err(self.too_much(file, "more files that include files", MAX_FILES));
        }
        let mut place = Place { file, args, depth };
        let mut xml = Reader::from_str(text);
        let mut lines = Lines::new(text);
        let mut node: Option<Node> = None;
        let mut include: Option<Include> = None;
        // What `if` or `unless` leaves out: elements that are open within it.
        let mut skipped = 0usize;
        // The line and text of a <rosparam> that is open.
        let mut inline: Option<(usize, String)> = None;
        loop {
            let event = xml.read_event();
            let at = lines.at(xml.buffer_position());
            let event = event.map_err(|e| ImportError::Syntax {
                file: file.to_owned(),
                line: at,
                problem: format!("this is no launch file: {}", shorten(&e.to_string())),
            })?;
            match event {
                Event::Eof => break,
                Event::Start(element) => {
                    if skipped > 0 || !self.holds(&place, &element, at) {
                        skipped += 1;
                        continue;
                    }
                    self.open(&mut place, &element, at, &mut node, &mut include, &mut inline)?;
                }
                Event::Empty(element) => {
                    if skipped > 0 || !self.holds(&place, &element, at) {
                        continue;
                    }
                    let mut nothing = None;
                    self.open(&mut place, &element, at, &mut node, &mut include, &mut nothing)?;
                    self.close(
                        &place,
                        element.name().as_ref(),
                        &mut node,
                        &mut include,
                        &mut None,
                    )?;
                }
                Event::End(element) => {
                    if skipped > 0 {
                        skipped -= 1;
                        continue;
                    }
                    self.close(
                        &place,
                        element.name().as_ref(),
                        &mut node,
                        &mut include,
                        &mut inline,
                    )?;
                }
                Event::Text(words) => {
                    if let Some((_, text)) = inline.as_mut().filter(|_| skipped == 0) {
                        text.push_str(&words);
                    }
                }
                Event::CData(words) => {
                    if let Some((_, text)) = inline.as_mut().filter(|_| skipped == 0) {
                        text.push_str(&words);
                    }
                }
                Event::GeneralRef(name) => {
                    if let Some((_, text)) = inline.as_mut().filter(|_| skipped == 0) {
                        text.push_str(resolve_predefined_entity(&name).unwrap_or("?"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether `if` and `unless` let an element count. What cannot be known counts.
    fn holds(&mut self, place: &Place<'_>, element: &BytesStart<'_>, line: usize) -> bool {
        for (key, wanted) in [("if", true), ("unless", false)] {
            let Some(value) = attribute(element, key) else {
                continue;
            };
            match self.replaced(place, line, &value).as_str() {
                "true" | "1" | "True" if wanted => {}
                "false" | "0" | "False" if !wanted => {}
                "true" | "1" | "True" | "false" | "0" | "False" => return false,
                other => self.notes.add(
                    place.file,
                    line,
                    format!("{key}=\"{other}\" is not evaluated: the element counts"),
                ),
            }
        }
        true
    }

    fn open(
        &mut self,
        place: &mut Place<'_>,
        element: &BytesStart<'_>,
        line: usize,
        node: &mut Option<Node>,
        include: &mut Option<Include>,
        inline: &mut Option<(usize, String)>,
    ) -> Result<(), ImportError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.too_much(place.file, "more elements", MAX_VALUES));
        }
        let given = |key: &str| attribute(element, key);
        match element.name().as_ref() {
            "arg" => {
                let Some(name) = given("name") else { return Ok(()) };
                let value = given("value")
                    .map(|v| (v, true))
                    .or_else(|| given("default").map(|v| (v, false)));
                let Some((value, fixed)) = value else {
                    return Ok(());
                };
                let value = self.replaced(place, line, &value);
                match include {
                    Some(include) => drop(include.args.insert(name, value)),
                    None if fixed => drop(place.args.insert(name, value)),
                    None => {
                        place.args.entry(name).or_insert(value);
                    }
                }
            }
            "include" => {
                let named = given("file").unwrap_or_default();
                *include = Some(Include {
                    line,
                    named: self.replaced(place, line, &named),
                    args: BTreeMap::new(),
                });
            }
            "node" => {
                if self.nodes.len() >= MAX_NODES {
                    return Err(self.too_much(place.file, "more nodes", MAX_NODES));
                }
                let text = |key| given(key).unwrap_or_default();
                *node = Some(Node {
                    file: place.file.to_owned(),
                    line,
                    package: self.replaced(place, line, &text("pkg")),
                    kind: self.replaced(place, line, &text("type")),
                    params: Vec::new(),
                });
            }
            "param" => {
                if let (Some(node), Some(name)) = (node.as_mut(), given("name")) {
                    let value = given("value").unwrap_or_default();
                    node.params.push(Param {
                        file: place.file.to_owned(),
                        line,
                        name: name.trim_start_matches('~').to_owned(),
                        value: self.replaced(place, line, &value),
                    });
                }
            }
            "rosparam" => {
                if let Some(named) = given("file") {
                    let named = self.replaced(place, line, &named);
                    let (file, value) = self.load(place, line, &named)?;
                    if let Some(node) = node.as_mut() {
                        node.params.push(Param {
                            file,
                            line: 1,
                            name: String::new(),
                            value,
                        });
                    } else {
                        self.notes.add(
                            place.file,
                            line,
                            "parameters outside a <node> are not looked at: left out",
                        );
                    }
                } else {
                    *inline = Some((line, given("param").map_or(String::new(), |p| format!("{p}:\n"))));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(
        &mut self,
        place: &Place<'_>,
        name: &str,
        node: &mut Option<Node>,
        include: &mut Option<Include>,
        inline: &mut Option<(usize, String)>,
    ) -> Result<(), ImportError> {
        match name {
            "node" => self.nodes.extend(node.take()),
            "rosparam" => {
                if let (Some((line, text)), Some(node)) = (inline.take(), node.as_mut()) {
                    let value = self.replaced(place, line, &text);
                    node.params.push(Param {
                        file: place.file.to_owned(),
                        line,
                        name: String::new(),
                        value,
                    });
                }
            }
            "include" => {
                if let Some(include) = include.take() {
                    let (file, text) = self.load(place, include.line, &include.named)?;
                    self.file(&file, &text, include.args, place.depth + 1)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn load(&mut self, place: &Place<'_>, line: usize, named: &str) -> Result<(String, String), ImportError> {
        let fail = |reason| ImportError::File {
            file: place.file.to_owned(),
            line,
            named: shorten(named),
            reason,
        };
        let (file, text) = (self.load)(place.file, named).map_err(fail)?;
        check_length(&file, &text)?;
        Ok((file, text))
    }

    /// With `$(arg NAME)` replaced; `$(find …)` stays.
    fn replaced(&mut self, place: &Place<'_>, line: usize, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("$(") {
            out.push_str(before);
            let Some((inside, behind)) = after.split_once(')') else {
                out.push_str("$(");
                rest = after;
                continue;
            };
            let words: Vec<&str> = inside.split_whitespace().collect();
            match words.as_slice() {
                ["arg", name] if place.args.contains_key(*name) => out.push_str(&place.args[*name]),
                ["optenv", _, default @ ..] => out.push_str(&default.join(" ")),
                ["find", _] => {
                    out.push_str("$(");
                    out.push_str(inside);
                    out.push(')');
                }
                _ => {
                    self.notes
                        .add(place.file, line, format!("$({inside}) is not known here"));
                    out.push_str("$(");
                    out.push_str(inside);
                    out.push(')');
                }
            }
            rest = behind;
            if out.len() > MAX_VALUE {
                break;
            }
        }
        out.push_str(rest);
        let mut end = out.len().min(MAX_FILE);
        while !out.is_char_boundary(end) {
            end -= 1;
        }
        out.truncate(end);
        out
    }
}

fn attribute(element: &BytesStart<'_>, key: &str) -> Option<String> {
    let found = element.try_get_attribute(key).ok().flatten()?;
    let value = unescape(&found.value).map_or_else(|_| found.value.to_string(), |text| text.into_owned());
    Some(value)
}

/// Counts lines as reading goes on.
struct Lines<'a> {
    text: &'a [u8],
    counted: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Lines {
            text: text.as_bytes(),
            counted: 0,
            line: 1,
        }
    }

    /// The line of a position, which is none before the last.
    fn at(&mut self, position: u64) -> usize {
        let end = usize::try_from(position)
            .unwrap_or(usize::MAX)
            .min(self.text.len());
        if let Some(passed) = self.text.get(self.counted..end) {
            self.line += passed.iter().filter(|b| **b == b'\n').count();
            self.counted = end;
        }
        self.line
    }
}

fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

//! Launch files of roslaunch: the nodes of some packages, with what `<param>`, `<rosparam>` and `<remap>` give them.
//! Everything else is reported.

use super::{ImportError, Load, MAX_FILE, Notes, check_length};
use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesStart, Event};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum depth of included files.
const MAX_DEPTH: usize = 8;
/// Maximum number of files of one configuration, and of nodes and values in them.
const MAX_FILES: usize = 64;
const MAX_NODES: usize = 1024;
const MAX_VALUES: usize = 16_384;
/// Longest value after `$(arg …)` is replaced.
const MAX_VALUE: usize = 64 << 10;

/// A `<node>`.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) file: String,
    pub(super) line: usize,
    /// Name including its namespace, such as `/udp_sender`.
    pub(super) name: String,
    pub(super) package: String,
    pub(super) kind: String,
    pub(super) params: Vec<Param>,
    pub(super) remaps: Vec<Remap>,
}

/// A parameter of a node.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) file: String,
    /// Line at which its value begins.
    pub(super) line: usize,
    /// Empty if `value` is a YAML document with several parameters.
    pub(super) name: String,
    pub(super) value: String,
    /// Whether `value` is YAML.
    pub(super) is_yaml: bool,
}

/// A `<remap>`, which several nodes may share.
#[derive(Clone, Debug)]
pub(super) struct Remap {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) from: String,
    pub(super) to: String,
}

impl Node {
    /// Namespace of the node's names.
    pub(super) fn namespace(&self) -> &str {
        match self.name.rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((namespace, _)) => namespace,
        }
    }
}

/// Returns the nodes of these packages in a launch file and the files that it includes, and all remaps.
pub(super) fn nodes(
    file: &str,
    text: &str,
    packages: &[&str],
    notes: &mut Notes,
    load: &mut Load<'_>,
) -> Result<(Vec<Node>, Vec<Remap>), ImportError> {
    let mut reading = Reading {
        packages,
        notes,
        load,
        nodes: Vec::new(),
        files: 0,
        values: 0,
        remaps: Vec::new(),
        all_remaps: Vec::new(),
        namespace: String::new(),
    };
    reading.file(file, text, BTreeMap::new(), 0)?;
    Ok((reading.nodes, reading.all_remaps))
}

struct Reading<'a, 'b> {
    packages: &'a [&'a str],
    notes: &'a mut Notes,
    load: &'a mut Load<'b>,
    nodes: Vec<Node>,
    files: usize,
    values: usize,
    /// Remaps that apply to the nodes that follow.
    remaps: Vec<Remap>,
    all_remaps: Vec<Remap>,
    /// Namespace of the open groups; empty, or for example `/robot`.
    namespace: String,
}

/// State of reading one file.
struct FileState<'a> {
    file: &'a str,
    args: BTreeMap<String, String>,
    depth: usize,
    /// Arguments that it declares, each with its line, and arguments that are used.
    declared: Vec<(String, usize)>,
    used: BTreeSet<String>,
    /// State to restore when the open groups end: the number of remaps, and the namespace.
    scopes: Vec<(usize, String)>,
    node: Option<Node>,
    /// Whether the open node belongs to another package.
    is_foreign: bool,
    include: Option<Include>,
    /// Line, name and text of an open `<rosparam>`.
    inline: Option<(usize, String, String)>,
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
        let before = (self.remaps.len(), self.namespace.clone());
        let mut state = FileState {
            file,
            args,
            depth,
            declared: Vec::new(),
            used: BTreeSet::new(),
            scopes: Vec::new(),
            node: None,
            is_foreign: false,
            include: None,
            inline: None,
        };
        let mut xml = Reader::from_str(text);
        let mut lines = Lines::new(text);
        // Number of open elements inside one that `if` or `unless` excludes.
        let mut skipped = 0usize;
        let mut open = 0usize;
        loop {
            let event = xml.read_event();
            let at = lines.at(xml.buffer_position());
            let event = event.map_err(|e| ImportError::Syntax {
                file: file.to_owned(),
                line: at,
                problem: format!("this is not a launch file: {}", shorten(&e.to_string())),
            })?;
            match event {
                Event::Eof if open > 0 => {
                    return Err(ImportError::Syntax {
                        file: file.to_owned(),
                        line: at,
                        problem: "this is not a launch file: it ends inside an element, and may be truncated"
                            .into(),
                    });
                }
                Event::Eof => break,
                Event::Start(element) => {
                    open += 1;
                    state.mark(&element);
                    if skipped > 0 || !self.holds(&state, &element, at) {
                        skipped += 1;
                        continue;
                    }
                    self.open(&mut state, &element, at)?;
                }
                Event::Empty(element) => {
                    state.mark(&element);
                    if skipped > 0 || !self.holds(&state, &element, at) {
                        continue;
                    }
                    self.open(&mut state, &element, at)?;
                    self.close(&mut state, element.name().as_ref())?;
                }
                Event::End(element) => {
                    open = open.saturating_sub(1);
                    if skipped > 0 {
                        skipped -= 1;
                        continue;
                    }
                    self.close(&mut state, element.name().as_ref())?;
                }
                Event::Text(words) => state.add_text(skipped, &words),
                Event::CData(words) => state.add_text(skipped, &words),
                Event::GeneralRef(name) => {
                    state.add_text(skipped, resolve_predefined_entity(&name).unwrap_or("?"));
                }
                _ => {}
            }
        }
        for (name, line) in std::mem::take(&mut state.declared) {
            if !state.used.contains(&name) {
                let text = format!("the argument {name} is not used: ignored");
                self.notes.add(file, line, text);
            }
        }
        self.remaps.truncate(before.0);
        self.namespace = before.1;
        Ok(())
    }

    /// Whether `if` and `unless` include an element. An element whose condition cannot be evaluated is included.
    fn holds(&mut self, state: &FileState<'_>, element: &BytesStart<'_>, line: usize) -> bool {
        for (key, wanted) in [("if", true), ("unless", false)] {
            let Some(value) = attribute(element, key) else {
                continue;
            };
            match self.replaced(state, line, &value).as_str() {
                "true" | "1" | "True" if wanted => {}
                "false" | "0" | "False" if !wanted => {}
                "true" | "1" | "True" | "false" | "0" | "False" => return false,
                other => self.notes.add(
                    state.file,
                    line,
                    format!("{key}=\"{other}\" is not evaluated: the element is included"),
                ),
            }
        }
        true
    }

    fn open(
        &mut self,
        state: &mut FileState<'_>,
        element: &BytesStart<'_>,
        line: usize,
    ) -> Result<(), ImportError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.too_much(state.file, "more elements", MAX_VALUES));
        }
        if state.is_foreign {
            return Ok(());
        }
        let file = state.file.to_owned();
        let given = |key: &str| attribute(element, key);
        match element.name().as_ref() {
            "launch" => {}
            "group" => {
                state.scopes.push((self.remaps.len(), self.namespace.clone()));
                if let Some(ns) = given("ns") {
                    let ns = self.replaced(state, line, &ns);
                    self.enter(&ns);
                }
            }
            "arg" => {
                let Some(name) = given("name") else { return Ok(()) };
                let value = given("value")
                    .map(|v| (v, true))
                    .or_else(|| given("default").map(|v| (v, false)));
                let value = value.map(|(text, fixed)| (self.replaced(state, line, &text), fixed));
                match (&mut state.include, value) {
                    (Some(include), Some((value, _))) => drop(include.args.insert(name, value)),
                    (Some(_), None) => {}
                    (None, value) => {
                        state.declared.push((name.clone(), line));
                        match value {
                            Some((value, true)) => drop(state.args.insert(name, value)),
                            Some((value, false)) => drop(state.args.entry(name).or_insert(value)),
                            None => {}
                        }
                    }
                }
            }
            "include" => {
                let named = given("file").unwrap_or_default();
                state.include = Some(Include {
                    line,
                    named: self.replaced(state, line, &named),
                    args: BTreeMap::new(),
                });
            }
            "node" => {
                if self.nodes.len() >= MAX_NODES {
                    return Err(self.too_much(state.file, "more nodes", MAX_NODES));
                }
                let text = |key| given(key).unwrap_or_default();
                let package = self.replaced(state, line, &text("pkg"));
                let kind = self.replaced(state, line, &text("type"));
                let name = self.replaced(state, line, &text("name"));
                state.is_foreign = !self.packages.contains(&package.as_str());
                if state.is_foreign {
                    let text = format!(
                        "the node {name} ({package}/{kind}) does not belong to nimbro_network: start it as before"
                    );
                    self.notes.add(state.file, line, text);
                    return Ok(());
                }
                let outside = self.namespace.clone();
                if let Some(ns) = given("ns") {
                    let ns = self.replaced(state, line, &ns);
                    self.enter(&ns);
                }
                let name = format!("{}/{name}", self.namespace);
                self.namespace = outside;
                state.node = Some(Node {
                    file,
                    line,
                    name,
                    package,
                    kind,
                    params: Vec::new(),
                    remaps: self.remaps.clone(),
                });
            }
            "param" => {
                let name = given("name").unwrap_or_default();
                let value = given("value").unwrap_or_default();
                let value = self.replaced(state, line, &value);
                match &mut state.node {
                    Some(node) => node.params.push(Param {
                        file,
                        line,
                        name: name.trim_start_matches('~').to_owned(),
                        value,
                        is_yaml: false,
                    }),
                    None => self.notes.add(
                        &file,
                        line,
                        format!("{name}: parameters outside a <node> are ignored"),
                    ),
                }
            }
            "remap" => {
                let text = |key| given(key).unwrap_or_default();
                let remap = Remap {
                    file,
                    line,
                    from: self.replaced(state, line, &text("from")),
                    to: self.replaced(state, line, &text("to")),
                };
                self.all_remaps.push(remap.clone());
                match &mut state.node {
                    Some(node) => node.remaps.push(remap),
                    None => self.remaps.push(remap),
                }
            }
            "rosparam" => self.rosparam(state, element, line)?,
            other => {
                let text = format!("<{}> is ignored", shorten(other));
                self.notes.add(state.file, line, text);
            }
        }
        Ok(())
    }

    fn rosparam(
        &mut self,
        state: &mut FileState<'_>,
        element: &BytesStart<'_>,
        line: usize,
    ) -> Result<(), ImportError> {
        let given = |key: &str| attribute(element, key);
        let left_out = match given("command").as_deref() {
            None | Some("load") if state.node.is_some() => None,
            None | Some("load") => Some("parameters outside a <node> are ignored".to_owned()),
            Some(other) => Some(format!("command=\"{other}\" is ignored")),
        };
        let name = given("param").unwrap_or_default();
        match (left_out, given("file")) {
            (Some(text), _) => self.notes.add(state.file, line, text),
            (None, Some(named)) => {
                let named = self.replaced(state, line, &named);
                let (file, value) = self.load(state, line, &named)?;
                if let Some(node) = &mut state.node {
                    node.params.push(Param {
                        file,
                        line: 1,
                        name,
                        value,
                        is_yaml: true,
                    });
                }
            }
            (None, None) => state.inline = Some((line, name, String::new())),
        }
        Ok(())
    }

    fn close(&mut self, state: &mut FileState<'_>, name: &str) -> Result<(), ImportError> {
        match name {
            "node" => {
                state.is_foreign = false;
                self.nodes.extend(state.node.take());
            }
            "group" => {
                if let Some((remaps, namespace)) = state.scopes.pop() {
                    self.remaps.truncate(remaps);
                    self.namespace = namespace;
                }
            }
            "rosparam" => {
                if let Some((line, name, text)) = state.inline.take() {
                    let value = self.replaced(state, line, &text);
                    if let Some(node) = &mut state.node {
                        node.params.push(Param {
                            file: state.file.to_owned(),
                            line,
                            name,
                            value,
                            is_yaml: true,
                        });
                    }
                }
            }
            "include" => {
                if let Some(include) = state.include.take() {
                    match self.load(state, include.line, &include.named) {
                        Ok((file, text)) => self.file(&file, &text, include.args, state.depth + 1)?,
                        // Launch files of others are in their packages.
                        Err(ImportError::File { named, reason, .. }) => {
                            let text = format!(
                                "{named} is not included ({reason}): import it separately if it contains nodes of nimbro_network"
                            );
                            self.notes.add(state.file, include.line, text);
                        }
                        Err(other) => return Err(other),
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Enters a namespace, which may be absolute.
    fn enter(&mut self, ns: &str) {
        let outer = match ns.starts_with('/') {
            true => "",
            false => &self.namespace,
        };
        let inner = ns.trim_matches('/');
        self.namespace = match inner {
            "" => outer.to_owned(),
            inner => format!("{outer}/{inner}"),
        };
    }

    fn load(
        &mut self,
        state: &FileState<'_>,
        line: usize,
        named: &str,
    ) -> Result<(String, String), ImportError> {
        let fail = |reason| ImportError::File {
            file: state.file.to_owned(),
            line,
            named: shorten(named),
            reason,
        };
        let (file, text) = (self.load)(state.file, named).map_err(fail)?;
        check_length(&file, &text)?;
        Ok((file, text))
    }

    /// Replaces `$(arg NAME)`; `$(find …)` stays.
    fn replaced(&mut self, state: &FileState<'_>, line: usize, text: &str) -> String {
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
                ["arg", name] if state.args.contains_key(*name) => out.push_str(&state.args[*name]),
                ["optenv", _, default @ ..] => out.push_str(&default.join(" ")),
                // File names are relative to their launch file.
                ["dirname"] => out.push('.'),
                ["find", _] => {
                    out.push_str("$(");
                    out.push_str(inside);
                    out.push(')');
                }
                _ => {
                    self.notes
                        .add(state.file, line, format!("$({inside}) is not known here"));
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

impl FileState<'_> {
    /// Records which arguments an element uses.
    fn mark(&mut self, element: &BytesStart<'_>) {
        for attribute in element.attributes().with_checks(false).flatten() {
            self.mark_text(&attribute.value);
        }
    }

    fn mark_text(&mut self, mut text: &str) {
        while let Some((_, after)) = text.split_once("$(arg") {
            let (name, behind) = after.split_once(')').unwrap_or((after, ""));
            self.used.insert(name.trim().to_owned());
            text = behind;
        }
    }

    /// Handles text inside an element.
    fn add_text(&mut self, skipped: usize, words: &str) {
        self.mark_text(words);
        if let Some((_, _, text)) = self.inline.as_mut().filter(|_| skipped == 0) {
            text.push_str(words);
        }
    }
}

fn attribute(element: &BytesStart<'_>, key: &str) -> Option<String> {
    let found = element.try_get_attribute(key).ok().flatten()?;
    let value = unescape(&found.value).map_or_else(|_| found.value.to_string(), |text| text.into_owned());
    Some(value)
}

/// Counts lines while reading.
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

    /// Returns the line of a position. Positions must not decrease.
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

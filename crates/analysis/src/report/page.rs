//! The page: description, tables and figures of each file.

use super::figures;
use super::read::{Document, Flat, find, plain};
use crate::axis::short;
use crate::svg::escape;
use serde_json::Value;
use std::fmt::Write;

pub(super) fn html(title: &str, documents: &[Document]) -> String {
    let title = escape(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
        include_str!("style.css")
    );
    if documents.len() > 1 {
        out.push_str("<ul>\n");
        for (i, d) in documents.iter().enumerate() {
            let _ = writeln!(
                out,
                "<li><a href=\"#file{i}\">{}</a> ({})</li>",
                escape(&d.experiment),
                escape(&d.name)
            );
        }
        out.push_str("</ul>\n");
    }
    for (i, document) in documents.iter().enumerate() {
        section(&mut out, document, i);
    }
    let _ = writeln!(
        out,
        "<footer>Made by ropewalk {}; every number comes from the files named above.</footer>\n</body>\n</html>",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn section(out: &mut String, d: &Document, file: usize) {
    let _ = writeln!(
        out,
        "<h2 id=\"file{file}\">{}</h2>\n<p class=\"about\">{}: {} cells</p>",
        escape(&d.experiment),
        escape(&d.name),
        d.cells.len()
    );
    out.push_str("<dl class=\"about\">\n");
    for (name, value) in &d.about {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    out.push_str("</dl>\n");
    if !d.notes.is_empty() {
        out.push_str("<ul class=\"notes\">\n");
        for note in &d.notes {
            let _ = writeln!(out, "<li>{}</li>", escape(note));
        }
        out.push_str("</ul>\n");
    }
    for figure in figures::all(d, file) {
        let _ = writeln!(
            out,
            "<figure>\n<figcaption>{}</figcaption>\n{}</figure>",
            escape(&figure.title),
            figure.svg
        );
    }
    for group in groups(d) {
        table(out, d, file, &group);
    }
    papers_own(out, d);
}

/// Rows of the paper that are in no other table, since nothing was measured under their names.
fn papers_own(out: &mut String, d: &Document) {
    let measured = columns(d.cells.iter().map(|c| &c.metrics));
    let rows: Vec<&Flat> = d.paper.iter().filter(|p| !stands_beside(p, &measured)).collect();
    if rows.is_empty() {
        return;
    }
    let names = columns(rows.iter().flat_map(|r| [&r.params, &r.metrics]));
    out.push_str("<div class=\"table\"><table>\n<thead><tr><th class=\"text\">system</th>");
    for name in &names {
        let _ = write!(out, "<th>{}</th>", escape(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let _ = write!(
            out,
            "<tr class=\"paper\"><td class=\"text\">{} (given, not measured)</td>",
            escape(&row.system)
        );
        for name in &names {
            entry(out, find(&row.params, name).or(find(&row.metrics, name)), None);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// Whether a row of the paper has a statistic that was also measured.
fn stands_beside(row: &Flat, measured: &[String]) -> bool {
    row.metrics
        .iter()
        .any(|(n, _)| n.contains('.') && measured.contains(n))
}

/// Cells with the same metrics share a table.
fn groups(d: &Document) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Vec<&str>, Vec<usize>)> = Vec::new();
    for (i, cell) in d.cells.iter().enumerate() {
        let what = find(&cell.params, "what")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // Metrics that are missing because nothing was received do not create another table.
        let tops = cell.metrics.iter().map(|(n, _)| n.split('.').next().unwrap_or(n));
        let mut key: Vec<&str> = std::iter::once(what).chain(tops).collect();
        key.dedup();
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, members)) => members.push(i),
            None => groups.push((key, vec![i])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

fn table(out: &mut String, d: &Document, file: usize, members: &[usize]) {
    let cells: Vec<(usize, &Flat)> = members.iter().map(|i| (*i, &d.cells[*i])).collect();
    let params = columns(cells.iter().map(|(_, c)| &c.params));
    let metrics = columns(cells.iter().map(|(_, c)| &c.metrics));
    // The paper's rows are below the cells that have their numbers.
    let paper: Vec<&Flat> = d
        .paper
        .iter()
        .filter(|p| {
            p.metrics
                .iter()
                .any(|(n, _)| n.contains('.') && metrics.contains(n))
        })
        .collect();
    out.push_str("<div class=\"table\"><table>\n<thead><tr><th class=\"text\">system</th>");
    for name in params.iter().chain(&metrics) {
        let _ = write!(
            out,
            "<th>{}</th>",
            escape(name).replace('.', "<wbr>.").replace('_', "_<wbr>")
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (i, cell) in &cells {
        let _ = write!(out, "<tr><td class=\"text\">{}</td>", escape(&cell.system));
        for name in &params {
            entry(out, find(&cell.params, name), None);
        }
        for name in &metrics {
            entry(out, find(&cell.metrics, name), Some((file, *i, name)));
        }
        out.push_str("</tr>\n");
    }
    for row in paper {
        let _ = write!(
            out,
            "<tr class=\"paper\"><td class=\"text\">{} (the paper)</td>",
            escape(&row.system)
        );
        for name in &params {
            entry(out, find(&row.params, name), None);
        }
        for name in &metrics {
            entry(out, find(&row.metrics, name), None);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn columns<'a>(rows: impl Iterator<Item = &'a Vec<(String, Value)>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows.flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// A table's cell; with the source of the value, if it is measured.
fn entry(out: &mut String, value: Option<&Value>, of: Option<(usize, usize, &str)>) {
    let Some(value) = value else {
        out.push_str("<td></td>");
        return;
    };
    let mark = of.map_or(String::new(), |(file, cell, metric)| {
        format!(
            " data-file=\"{file}\" data-cell=\"{cell}\" data-metric=\"{}\" data-value=\"{}\"",
            attribute(metric),
            attribute(&plain(value))
        )
    });
    let _ = match value.as_f64() {
        Some(number) => write!(out, "<td{mark}>{}</td>", short(number)),
        None => write!(out, "<td class=\"text\"{mark}>{}</td>", escape(&plain(value))),
    };
}

/// Text for an attribute.
pub(super) fn attribute(text: &str) -> String {
    escape(text).replace('"', "&quot;")
}

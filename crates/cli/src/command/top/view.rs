//! How a link looks: in a terminal, and as a plain table.

use super::model::{Direction, Peer, Topic, View};
use bench::table::{Align, Table};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row, Table as Rows, TableState};

const PEER_HEAD: [&str; 7] = [
    "peer",
    "",
    "rtt ms",
    "rate Mbit/s",
    "air %",
    "out Mbit/s",
    "in Mbit/s",
];
const PEER_WIDTHS: [u16; 7] = [16, 5, 8, 16, 6, 10, 9];
const TOPIC_HEAD: [&str; 13] = [
    "topic", "", "peer", "prio", "offered", "through", "Mbit/s", "deliv %", "delay ms", "p99", "jitter",
    "queue", "lost/s",
];
const TOPIC_WIDTHS: [u16; 13] = [24, 3, 10, 4, 7, 7, 7, 7, 8, 7, 7, 5, 7];
/// Between two columns; those that do not fit are left out, from the right.
const SPACING: u16 = 1;

/// Draws a picture, with the selected topic marked and `note` at the foot.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, selected: usize, note: &str) {
    let peers = u16::try_from(view.peers.len()).unwrap_or(u16::MAX).min(8);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(peers + 1),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .split(frame.area());
    frame.render_widget(Line::from(head(view)).bold(), areas[0]);
    rows(
        frame,
        areas[1],
        &PEER_HEAD,
        &PEER_WIDTHS,
        view.peers.iter().map(peer_cells),
        None,
    );
    let topics = view.topics.iter().map(topic_cells);
    rows(
        frame,
        areas[3],
        &TOPIC_HEAD,
        &TOPIC_WIDTHS,
        topics,
        Some(selected),
    );
    if let Some(topic) = view.topics.get(selected) {
        frame.render_widget(Line::from(losses(topic)), areas[4]);
    }
    let foot = if note.is_empty() {
        "↑↓ topic   + - priority (> < by 10)   q end"
    } else {
        note
    };
    frame.render_widget(Line::from(foot).dim(), areas[5]);
}

fn rows<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    head: &[&'static str; N],
    widths: &[u16; N],
    cells: impl Iterator<Item = [String; N]>,
    selected: Option<usize>,
) {
    let mut room = area.width;
    let fit = widths
        .iter()
        .take_while(|w| {
            let fits = room >= **w;
            room = room.saturating_sub(**w + SPACING);
            fits
        })
        .count();
    let shown = |cells: [String; N]| Row::new(cells.into_iter().take(fit).map(Cell::from));
    let head = Row::new(head[..fit].iter().map(|h| Cell::from(*h))).style(Style::new().underlined());
    let table = Rows::new(
        cells.map(shown),
        widths[..fit].iter().map(|w| Constraint::Length(*w)),
    )
    .header(head)
    .column_spacing(SPACING)
    .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut state);
}

/// The same as text.
pub(super) fn plain(view: &View) -> String {
    let mut lines = vec![head(view)];
    let mut peers = Table::new(&PEER_HEAD.map(|h| (h, Align::Left)));
    view.peers.iter().for_each(|p| peers.row(peer_cells(p)));
    let mut topics = Table::new(&TOPIC_HEAD.map(|h| (h, Align::Left)));
    view.topics.iter().for_each(|t| topics.row(topic_cells(t)));
    lines.extend(peers.lines());
    lines.extend(topics.lines());
    lines.extend(view.topics.iter().filter(|t| !t.drops.is_empty()).map(losses));
    lines.join("\n")
}

fn head(view: &View) -> String {
    let link = if view.link == view.host {
        view.host.clone()
    } else {
        format!("{} of {}", view.link, view.host)
    };
    let unpublished = match view.unpublished.len() {
        0 => String::new(),
        1 => ", 1 topic without publisher".to_owned(),
        n => format!(", {n} topics without publisher"),
    };
    format!(
        "link {link}: air {:.1} %, {:.3} Mbit/s out, {} kB queued{unpublished}",
        view.air_share * 100.0,
        view.sent_mbit_s,
        view.queued_bytes / 1000
    )
}

fn peer_cells(p: &Peer) -> [String; 7] {
    let rate = match (p.rate_mbit_s, p.rate_source.as_str()) {
        (None, _) => "–".to_owned(),
        (_, "unlimited") => "unlimited".to_owned(),
        (Some(r), "") => format!("{r:.2}"),
        (Some(r), source) => format!("{r:.2} {source}"),
    };
    [
        p.name.clone(),
        if p.up { "up" } else { "down" }.to_owned(),
        maybe(p.round_trip_ms, 1),
        rate,
        format!("{:.1}", p.air_share * 100.0),
        format!("{:.3}", p.sent_mbit_s),
        format!("{:.3}", p.received_mbit_s),
    ]
}

fn topic_cells(t: &Topic) -> [String; 13] {
    let (arrow, through) = match t.direction {
        Direction::Out => ("→", t.sent_hz),
        Direction::In => ("←", t.delivered_hz),
    };
    // What does not flow is said instead of rates.
    let arrow = if t.state == "ready" {
        arrow.to_owned()
    } else {
        format!("{arrow}!")
    };
    [
        t.topic.clone(),
        arrow,
        t.peer.clone(),
        t.priority.to_string(),
        maybe(t.offered_hz, 1),
        maybe(through, 1),
        format!("{:.3}", t.mbit_s),
        maybe(t.delivery.map(|d| d * 100.0), 1),
        maybe(t.delay_mean_ms, 1),
        maybe(t.delay_p99_ms, 1),
        maybe(t.jitter_p99_ms, 1),
        t.queued.to_string(),
        format!("{:.1}", t.lost_hz),
    ]
}

fn losses(t: &Topic) -> String {
    let state = match t.state.as_str() {
        "ready" | "" => String::new(),
        other => format!(" ({})", other.replace('_', " ")),
    };
    let reasons: Vec<String> = t.drops.iter().map(|(r, n)| format!("{r} {n}")).collect();
    let reasons = if reasons.is_empty() {
        "nothing".to_owned()
    } else {
        reasons.join(", ")
    };
    format!("{}{state} has lost {reasons}", t.topic)
}

fn maybe(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "–".to_owned(), |n| format!("{n:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::top::model::tests::view;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(width: u16, height: u16, view: &View, selected: usize, note: &str) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal
            .draw(|frame| draw(frame, view, selected, note))
            .expect("draws");
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_picture_shows_peers_topics_losses_and_keys() {
        let lines = drawn(130, 10, &view(), 0, "");
        assert_eq!(
            lines[0],
            "link robot: air 5.0 %, 0.400 Mbit/s out, 0 kB queued, 1 topic without publisher"
        );
        assert!(
            lines[2].starts_with("base             up    3.2      6.00 estimated"),
            "{lines:#?}"
        );
        assert!(
            lines[4].starts_with("topic") && lines[4].contains("delay ms"),
            "{lines:#?}"
        );
        assert!(
            lines[5].starts_with("/scan") && lines[5].contains("87.8"),
            "{lines:#?}"
        );
        assert!(
            lines[6].contains("/cmd_vel") && lines[6].contains("2.5"),
            "{lines:#?}"
        );
        assert_eq!(lines[8], "/scan has lost air 2, replaced 20");
        assert!(lines[9].contains("priority"), "{lines:#?}");
    }

    #[test]
    fn the_selected_topic_is_marked_and_a_note_replaces_the_keys() {
        let mut terminal = Terminal::new(TestBackend::new(130, 10)).expect("a terminal");
        terminal
            .draw(|frame| draw(frame, &view(), 1, "no such topic"))
            .expect("draws");
        let buffer = terminal.backend().buffer();
        let reversed = |y| buffer[(0, y)].modifier.contains(Modifier::REVERSED);
        assert_eq!((reversed(5), reversed(6)), (false, true));
        assert!(drawn(130, 10, &view(), 1, "no such topic")[9].starts_with("no such topic"));
    }

    #[test]
    fn any_size_and_no_content_are_drawn() {
        for (width, height) in [(1, 1), (10, 3), (40, 5), (79, 24), (300, 2)] {
            drawn(width, height, &view(), 7, "a note that is longer than that");
            drawn(width, height, &View::default(), 0, "");
        }
        // Narrow ones keep the first columns.
        let lines = drawn(60, 12, &view(), 0, "");
        assert!(
            lines[4].starts_with("topic") && !lines[4].contains("jitter"),
            "{lines:#?}"
        );
    }

    #[test]
    fn the_plain_table_has_the_same_numbers() {
        let text = plain(&view());
        for part in [
            "air 5.0 %",
            "base",
            "/scan",
            "87.8",
            "/cmd_vel",
            "has lost air 2, replaced 20",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

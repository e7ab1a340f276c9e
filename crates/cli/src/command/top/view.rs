//! Layout of the view: in a terminal, and as a plain table.

use observe::{Direction, Peer, Service, ServiceRole, Topic, TopicState, View};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table as Rows, TableState};
use stats::text::printable;
use terminal::table::{Align, Table};

const PEER_HEAD: [&str; 9] = [
    "peer",
    "",
    "rtt ms",
    "rate Mbit/s",
    "air %",
    "out Mbit/s",
    "in Mbit/s",
    "lost",
    "refused",
];
const PEER_WIDTHS: [u16; 9] = [16, 5, 8, 16, 6, 10, 9, 5, 7];
const TOPIC_HEAD: [&str; 13] = [
    "topic", "", "peer", "prio", "offered", "through", "Mbit/s", "deliv %", "delay ms", "p99", "jitter",
    "flight", "lost/s",
];
/// Columns by importance: a narrow terminal shows the first of these.
const PEER_ORDER: [usize; 9] = [0, 1, 5, 6, 2, 7, 3, 4, 8];
const TOPIC_ORDER: [usize; 13] = [0, 1, 5, 7, 8, 12, 3, 2, 6, 4, 9, 10, 11];
const SERVICE_ORDER: [usize; 8] = [0, 1, 4, 5, 7, 6, 2, 3];
/// The first and the third column grow with their contents.
const TOPIC_WIDTHS: [u16; 13] = [LEAST_NAME, 3, LEAST_PEER, 4, 7, 7, 7, 7, 8, 7, 7, 6, 7];
const LEAST_NAME: u16 = 24;
/// Width of a topic's name in a terminal without room for all columns.
const NARROW_NAME: u16 = 16;
/// Terminals narrower than this shorten the names.
const NARROW: u16 = 72;
const LEAST_PEER: u16 = 10;
const SERVICE_HEAD: [&str; 8] = [
    "service", "", "peer", "prio", "calls", "answered", "open", "failed",
];
const SERVICE_WIDTHS: [u16; 8] = [20, 11, 10, 4, 6, 8, 4, 10];
/// Space between two columns.
const SPACING: u16 = 1;
/// Most lines of peers and of services; topics get the rest.
const MOST_PEERS: usize = 8;
/// Most lines about peers that do not answer.
const MOST_UNHEARD: usize = 6;
const MOST_SERVICES: usize = 6;

/// Draws a view, with the selected topic marked and `note` at the bottom.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, selected: usize, note: &str) {
    let peers: Vec<_> = peers(view).collect();
    let lines = |n: usize, most: usize| if n == 0 { 0 } else { 1 + n.min(most) as u16 };
    let width = usize::from(frame.area().width);
    let mut unheard: Vec<String> = unheard(view)
        .flat_map(|text| wrapped(&printable(text), width))
        .collect();
    unheard.truncate(MOST_UNHEARD);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lines(peers.len(), MOST_PEERS).max(1)),
        Constraint::Length((unheard.len() as u16).max(1)),
        Constraint::Min(2),
        Constraint::Length(lines(view.services.len(), MOST_SERVICES)),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .split(frame.area());
    frame.render_widget(Line::from(printable(&head(view)).into_owned()).bold(), areas[0]);
    rows(
        frame,
        areas[1],
        (&PEER_HEAD, &PEER_WIDTHS, &PEER_ORDER),
        peers,
        None,
    );
    let unheard = unheard.into_iter().map(Line::from).collect::<Vec<_>>();
    frame.render_widget(Paragraph::new(unheard).yellow(), areas[2]);
    let topics: Vec<_> = view.topics.iter().map(topic_cells).collect();
    let widths = topic_widths(&topics, frame.area().width);
    let columns = (&TOPIC_HEAD, &widths, &TOPIC_ORDER);
    rows(frame, areas[3], columns, topics, Some(selected));
    let services = view.services.iter().map(service_cells).collect();
    let columns = (&SERVICE_HEAD, &SERVICE_WIDTHS, &SERVICE_ORDER);
    rows(frame, areas[4], columns, services, None);
    if let Some(topic) = view.topics.get(selected) {
        frame.render_widget(Line::from(printable(&losses(topic)).into_owned()), areas[5]);
    }
    let foot = if note.is_empty() {
        "↑↓ topic   + - priority (> < by 10)   q end"
    } else {
        note
    };
    frame.render_widget(Line::from(printable(foot).into_owned()).dim(), areas[6]);
}

/// Wraps a text to lines of at most `width` characters, except for longer words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().map(|l| (l.chars().count(), l));
        match last {
            Some((length, line)) if length == 0 || length + 1 + word.chars().count() <= width => {
                if length > 0 {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Shows names in full, as far as the terminal has room for them next to all other columns.
fn topic_widths(cells: &[[String; 13]], room: u16) -> [u16; 13] {
    let longest = |column: usize| {
        let lengths = cells.iter().map(|c| c[column].chars().count());
        u16::try_from(lengths.max().unwrap_or(0)).unwrap_or(u16::MAX)
    };
    let mut widths = TOPIC_WIDTHS;
    let all = widths.iter().sum::<u16>() + SPACING * (widths.len() as u16 - 1);
    if room < NARROW {
        widths[0] = longest(0).clamp(NARROW_NAME / 2, NARROW_NAME);
        return widths;
    }
    let mut spare = room.saturating_sub(all);
    for (column, least) in [(2, LEAST_PEER), (0, LEAST_NAME)] {
        let more = longest(column).saturating_sub(least).min(spare);
        widths[column] += more;
        spare -= more;
    }
    widths
}

/// Heads, widths and order of importance of a table's columns.
type Columns<'a, const N: usize> = (&'a [&'static str; N], &'a [u16; N], &'a [usize; N]);

fn rows<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    (head, widths, order): Columns<'_, N>,
    cells: Vec<[String; N]>,
    selected: Option<usize>,
) {
    let mut room = area.width;
    let mut fit: Vec<usize> = order
        .iter()
        .copied()
        .take_while(|column| {
            let fits = room >= widths[*column];
            room = room.saturating_sub(widths[*column] + SPACING);
            fits
        })
        .collect();
    fit.sort_unstable();
    let cell = |text: &String| Cell::from(printable(text).into_owned());
    let shown = |cells: [String; N]| Row::new(fit.iter().map(|column| cell(&cells[*column])));
    let head = Row::new(fit.iter().map(|column| Cell::from(head[*column]))).style(Style::new().underlined());
    let table = Rows::new(
        cells.into_iter().map(shown),
        // The last column gets the rest.
        fit.iter().map(|column| match column + 1 == N {
            true => Constraint::Min(widths[*column]),
            false => Constraint::Length(widths[*column]),
        }),
    )
    .header(head)
    .column_spacing(SPACING)
    .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut state);
}

/// The same as plain text.
pub(super) fn plain(view: &View) -> String {
    let mut lines = vec![head(view)];
    let mut peers = Table::new(&PEER_HEAD.map(|h| (h, Align::Left)));
    self::peers(view).for_each(|p| peers.row(p));
    let mut topics = Table::new(&TOPIC_HEAD.map(|h| (h, Align::Left)));
    view.topics.iter().for_each(|t| topics.row(topic_cells(t)));
    lines.extend(peers.lines());
    lines.extend(unheard(view).map(str::to_owned));
    lines.extend(topics.lines());
    if !view.services.is_empty() {
        let mut services = Table::new(&SERVICE_HEAD.map(|h| (h, Align::Left)));
        view.services.iter().for_each(|s| services.row(service_cells(s)));
        lines.extend(services.lines());
    }
    lines.extend(view.topics.iter().filter(|t| !t.drops.is_empty()).map(losses));
    lines.join("\n")
}

fn head(view: &View) -> String {
    let link = if view.link == view.host {
        view.host.clone()
    } else {
        format!("{} of {}", view.link, view.host)
    };
    // At the end, where a narrow terminal truncates it.
    let unpublished = match view.unpublished.as_slice() {
        [] => String::new(),
        names => format!(", nobody publishes {}", names.join(", ")),
    };
    let unsent = match view.unsent.first_key_value() {
        None => String::new(),
        Some((topic, why)) if view.unsent.len() == 1 => format!(", cannot send {topic}: {why}"),
        Some((topic, why)) => format!(
            ", cannot send {} topics, such as {topic}: {why}",
            view.unsent.len()
        ),
    };
    format!(
        "link {link}: air {:.1} %, {:.3} Mbit/s out, {} kB queued{unpublished}{unsent}",
        view.air_share * 100.0,
        view.sent_mbit_s,
        view.queued_bytes / 1000
    )
}

/// Peers that do not answer: address, for how long, and what to check.
fn unheard(view: &View) -> impl Iterator<Item = &str> {
    view.peers.iter().filter_map(|p| p.unheard.as_deref())
}

/// Direct peers, and hosts behind relays.
fn peers(view: &View) -> impl Iterator<Item = [String; 9]> + '_ {
    let behind = |host: &str, state: &str, over: String| {
        let mut cells = [(); 9].map(|()| String::new());
        (cells[0], cells[1], cells[3]) = (host.to_owned(), state.to_owned(), over);
        cells
    };
    let ways =
        (view.ways.iter()).map(move |w| behind(&w.host, "relay", format!("{} hops by {}", w.hops, w.over)));
    let unreachable = (view.unreachable.iter()).map(move |host| behind(host, "down", "no path".into()));
    view.peers.iter().map(peer_cells).chain(ways).chain(unreachable)
}

fn service_cells(s: &Service) -> [String; 8] {
    let arrow = if s.role == ServiceRole::Serve {
        "serves"
    } else {
        "calls"
    };
    let mut failed: Vec<String> = s.failed.iter().map(|(why, n)| format!("{why} {n}")).collect();
    if failed.is_empty() {
        failed.push("–".into());
    }
    // Whether the service can be called comes first.
    let state = match s.state.as_str() {
        "ready" => arrow.to_owned(),
        other => other.replace('_', " "),
    };
    [
        s.service.clone(),
        state,
        s.peer.clone(),
        s.priority.to_string(),
        s.calls.to_string(),
        s.answered.to_string(),
        s.open.to_string(),
        failed.join(", "),
    ]
}

fn peer_cells(p: &Peer) -> [String; 9] {
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
        p.lost.to_string(),
        p.refused_topics.to_string(),
    ]
}

fn topic_cells(t: &Topic) -> [String; 13] {
    let (arrow, through) = match t.direction {
        Direction::Out => ("→", t.sent_hz),
        Direction::In => ("←", t.delivered_hz),
    };
    // A topic that does not flow is marked, and one that rests is not at fault.
    let arrow = match t.state {
        TopicState::Ready | TopicState::Relayed => arrow.to_owned(),
        TopicState::Unwatched => format!("{arrow}–"),
        _ => format!("{arrow}!"),
    };
    [
        t.topic.clone(),
        arrow,
        t.other_end.clone(),
        t.priority.to_string(),
        maybe(t.offered_hz, 1),
        maybe(through, 1),
        format!("{:.3}", t.mbit_s),
        maybe(t.delivery.map(|d| d * 100.0), 1),
        maybe(t.delay_mean_ms, 1),
        maybe(t.delay_p99_ms, 1),
        maybe(t.jitter_p99_ms, 1),
        t.in_flight.map_or_else(|| "–".to_owned(), |n| n.to_string()),
        format!("{:.1}", t.lost_hz),
    ]
}

fn losses(t: &Topic) -> String {
    let state = match t.state.as_str() {
        "ready" | "relayed" | "" => String::new(),
        other => format!(" ({})", other.replace('_', " ")),
    };
    let reasons: Vec<String> = t.drops.iter().map(|(r, n)| format!("{r} {n}")).collect();
    let reasons = if reasons.is_empty() {
        "nothing".to_owned()
    } else {
        reasons.join(", ")
    };
    let of = match (t.offered, t.delivered, t.in_flight) {
        (Some(offered), Some(delivered), Some(in_flight)) => {
            format!(" of {offered} ({delivered} delivered, {in_flight} in flight)")
        }
        _ => String::new(),
    };
    let beside = match t.not_taken {
        0 => String::new(),
        n => format!("; subscribers there lost {n}"),
    };
    format!("{}{state} has lost {reasons}{of}{beside}", t.topic)
}

fn maybe(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "–".to_owned(), |n| format!("{n:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::sample::view;
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
        let lines = drawn(130, 14, &view(), 0, "");
        assert_eq!(
            lines[0],
            "link robot: air 5.0 %, 0.400 Mbit/s out, 0 kB queued, nobody publishes /map"
        );
        assert!(
            lines[2].starts_with("base             up    3.2      6.00 estimated"),
            "{lines:#?}"
        );
        assert!(
            lines[3].starts_with("far              relay          2 hops by base"),
            "{lines:#?}"
        );
        assert!(
            lines[4].starts_with("lost             down           no path"),
            "{lines:#?}"
        );
        assert!(
            lines[6].starts_with("topic") && lines[6].contains("delay ms"),
            "{lines:#?}"
        );
        assert!(
            lines[7].starts_with("/far/scan")
                && lines[7].contains(" far via base ")
                && lines[7].contains("89.1"),
            "{lines:#?}"
        );
        assert!(
            lines[8].contains("/cmd_vel") && lines[8].contains("2.5"),
            "{lines:#?}"
        );
        assert!(
            lines[11]
                .split_whitespace()
                .eq("/grasp no peer base 60 200 197 1 timed_out 2".split(' ')),
            "{lines:#?}"
        );
        assert_eq!(
            lines[12],
            "/far/scan has lost air 2, replaced 20 of 225 (180 delivered, 23 in flight); subscribers there lost 7"
        );
        assert!(lines[13].contains("priority"), "{lines:#?}");
    }

    #[test]
    fn the_selected_topic_is_marked_and_a_note_replaces_the_keys() {
        let mut terminal = Terminal::new(TestBackend::new(130, 14)).expect("a terminal");
        terminal
            .draw(|frame| draw(frame, &view(), 1, "no such topic"))
            .expect("draws");
        let buffer = terminal.backend().buffer();
        let reversed = |y| buffer[(0, y)].modifier.contains(Modifier::REVERSED);
        assert_eq!((reversed(7), reversed(8)), (false, true));
        assert!(drawn(130, 14, &view(), 1, "no such topic")[13].starts_with("no such topic"));
    }

    #[test]
    fn any_size_and_no_content_are_drawn() {
        for (width, height) in [(1, 1), (10, 3), (40, 5), (79, 24), (300, 2)] {
            drawn(width, height, &view(), 7, "a note that is longer than that");
            drawn(width, height, &View::default(), 0, "");
        }
        // A narrow terminal keeps the most important columns.
        let lines = drawn(60, 12, &view(), 0, "");
        assert!(
            lines[6].starts_with("topic") && !lines[6].contains("jitter"),
            "{lines:#?}"
        );
        let lines = drawn(50, 12, &view(), 0, "");
        for column in ["topic", "through", "deliv %", "delay ms"] {
            assert!(lines[6].contains(column), "{column}: {lines:#?}");
        }
        assert!(lines[7].contains("89.1"), "{lines:#?}");
    }

    #[test]
    fn long_names_stand_in_full_where_there_is_room() {
        let mut long = view();
        long.topics[0].topic = "/fleet/robot_1/camera/front/image_raw".into();
        long.topics[0].other_end = "robot_1 via relay".into();
        let lines = drawn(160, 14, &long, 0, "");
        let row = "/fleet/robot_1/camera/front/image_raw →   robot_1 via relay ";
        assert!(
            lines[7].starts_with(row) && lines[6].ends_with("lost/s"),
            "{lines:#?}"
        );
        let narrow = drawn(80, 14, &long, 0, "");
        assert!(narrow[7].starts_with("/fleet/robot_1/camera/fr →"), "{narrow:#?}");
    }

    #[test]
    fn a_peer_that_does_not_answer_is_named_with_what_to_check() {
        let mut view = view();
        let text = "base has not answered at 192.168.1.7:7400 for 12 s: check that its link runs and lists this host";
        view.peers[0].unheard = Some(text.into());
        assert!(plain(&view).contains(text), "{}", plain(&view));
        // In whole lines, however narrow the terminal.
        let lines = drawn(60, 20, &view, 0, "");
        let shown = lines[5..7].join(" ");
        assert_eq!(shown, text, "{lines:#?}");
    }

    #[test]
    fn the_plain_table_has_the_same_numbers() {
        let text = plain(&view());
        for part in [
            "air 5.0 %",
            "base",
            "/far/scan",
            "89.1",
            "/cmd_vel",
            "/grasp",
            "timed_out 2",
            "2 hops by base",
            "has lost air 2, replaced 20",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

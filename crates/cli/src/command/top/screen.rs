//! Live view in a terminal, and its keys.

use super::{Source, view};
use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use observe::{Direction, Topic, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Duration;

/// Longest time until a key or a signal is noticed.
const TICK: Duration = Duration::from_millis(50);

/// The terminal, restored when this is dropped, also after an error, a signal or a panic.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Screen, Failure> {
        Ok(Screen(ratatui::try_init().or_job("using the terminal")?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    End,
    Select(isize),
    Priority(i16),
    Nothing,
}

fn wish(key: &KeyEvent) -> Wish {
    if key.kind == KeyEventKind::Release {
        return Wish::Nothing;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::End,
        KeyCode::Char('q') | KeyCode::Esc => Wish::End,
        KeyCode::Up | KeyCode::Char('k') => Wish::Select(-1),
        KeyCode::Down | KeyCode::Char('j') => Wish::Select(1),
        KeyCode::Char('+' | '=') => Wish::Priority(1),
        KeyCode::Char('-') => Wish::Priority(-1),
        KeyCode::Char('>') => Wish::Priority(10),
        KeyCode::Char('<') => Wish::Priority(-10),
        _ => Wish::Nothing,
    }
}

/// Shows updates until the user or a signal ends it.
pub(super) fn show(source: &mut Source, signals: &Signals) -> Outcome {
    let mut screen = Screen::open()?;
    let (mut picture, mut selected, mut note) =
        (View::between(&source.before, &source.before), 0, String::new());
    loop {
        screen
            .0
            .draw(|frame| view::draw(frame, &picture, selected, &note))
            .or_job("drawing")?;
        if !event::poll(TICK.min(source.time_left())).or_job("reading the terminal")? {
            if signals.stopped() || source.is_over() {
                return Ok(());
            }
            if let Some(renewed) = source.renewed()? {
                selected = kept(&picture, selected, &renewed);
                picture = renewed;
            }
            continue;
        }
        let Event::Key(key) = event::read().or_job("reading the terminal")? else {
            continue;
        };
        match wish(&key) {
            Wish::End => return Ok(()),
            Wish::Select(by) => {
                let last = picture.topics.len().saturating_sub(1);
                selected = selected.saturating_add_signed(by).min(last);
                note.clear();
            }
            Wish::Priority(by) => note = change(source, &mut picture, selected, by),
            Wish::Nothing => {}
        }
        if signals.stopped() {
            return Ok(());
        }
    }
}

/// Index of the selected topic in a newer view: other topics may precede it by then, and a key is meant for that topic.
fn kept(old: &View, selected: usize, new: &View) -> usize {
    let which = |t: &Topic| (t.direction, t.topic.clone(), t.other_end.clone());
    let was = old.topics.get(selected).map(which);
    let same = new.topics.iter().position(|t| Some(which(t)) == was);
    same.unwrap_or_else(|| selected.min(new.topics.len().saturating_sub(1)))
}

/// Changes the priority of the selected topic, and returns a line about the result.
fn change(source: &Source, picture: &mut View, selected: usize, by: i16) -> String {
    let host = picture.host.clone();
    let Some(topic) = picture.topics.get_mut(selected) else {
        return "no topic selected".into();
    };
    if topic.direction == Direction::In || topic.source != host {
        let source = &topic.source;
        return format!("{}: its sender {source} sets the priority", topic.topic);
    }
    // The final receiver if there is one, whichever relay leads to it.
    let peer = match topic.to.as_slice() {
        [one] => one,
        _ => &topic.peer,
    };
    let priority = (i16::from(topic.priority) + by).clamp(0, 127);
    match source
        .running
        .set(&topic.topic, Some(peer), &[format!("priority={priority}")])
    {
        Ok(now) => {
            topic.priority = priority.unsigned_abs().try_into().unwrap_or(topic.priority);
            format!("{} {}", topic.topic, now.join("; "))
        }
        Err(e) => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_topic_stays_selected_when_others_come() {
        let topic = |name: &str| Topic {
            topic: name.into(),
            ..Topic::default()
        };
        let view = |names: &[&str]| View {
            topics: names.iter().map(|n| topic(n)).collect(),
            ..View::default()
        };
        let old = view(&["/b", "/c"]);
        assert_eq!(kept(&old, 1, &view(&["/a", "/b", "/c"])), 2);
        assert_eq!(kept(&old, 1, &view(&["/a"])), 0);
        assert_eq!(kept(&old, 0, &view(&[])), 0);
    }

    #[test]
    fn keys_mean_what_the_foot_says() {
        let plain = |c| wish(&KeyEvent::new(c, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('q')), Wish::End);
        assert_eq!(plain(KeyCode::Down), Wish::Select(1));
        assert_eq!(plain(KeyCode::Char('+')), Wish::Priority(1));
        assert_eq!(plain(KeyCode::Char('<')), Wish::Priority(-10));
        assert_eq!(plain(KeyCode::Char('c')), Wish::Nothing);
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(wish(&control), Wish::End);
    }
}

//! Whether help fits a terminal.

use clap::Command;

/// Columns of a terminal that no user has enlarged.
const COLUMNS: usize = 80;

/// Parts of a program's help that are torn apart at 80 columns: usage, which is not wrapped, and indented lines, such as
/// commands, which wrap at any word. Each is a fault, as `COMMAND: LINE`. Hidden commands are left out.
pub fn too_wide(command: Command) -> Vec<String> {
    let mut command = command.term_width(COLUMNS);
    command.build();
    let mut faults = Vec::new();
    check(&mut command, &mut faults);
    faults
}

fn check(command: &mut Command, faults: &mut Vec<String>) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let usage = command.render_usage().to_string();
    let texts = [
        command.get_long_about(),
        command.get_about(),
        command.get_before_help(),
        command.get_before_long_help(),
        command.get_after_help(),
        command.get_after_long_help(),
    ];
    let texts: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
    let indented = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.starts_with("  "));
    for line in usage.lines().chain(indented) {
        let fault = format!("{name}: {line}");
        if line.chars().count() > COLUMNS && !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        check(below, faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_torn_apart_is_found() {
        let long = "x".repeat(COLUMNS);
        let about = format!("A paragraph {long} is wrapped.\n\n  {long}");
        let below = Command::new("below")
            .long_about(about)
            .override_usage(long.clone());
        let faults = too_wide(Command::new("program").subcommand(below));
        let expected = [
            format!("program below: Usage: {long}"),
            format!("program below:   {long}"),
        ];
        assert_eq!(faults, expected);
    }
}

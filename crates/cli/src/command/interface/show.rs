//! `ropewalk interface show` and `proto`.

use super::{Search, lookup};
use crate::failure::{OrFail, Outcome};
use clap::Args;
use ropewalk::{FieldType, MessageType};
use std::io::Write;

/// Print a type's definition, with nested types indented
///
///   ropewalk interface show sensor_msgs/msg/LaserScan
///   ropewalk interface show example_interfaces/action/Fibonacci --path src
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Show {
    /// Type name, such as sensor_msgs/msg/LaserScan, std_srvs/srv/SetBool or std_msgs/String.
    #[arg(value_name = "TYPE")]
    name: String,
    /// Omit comments.
    #[arg(long)]
    no_comments: bool,
}

/// Print a message with its defaults as YAML, to fill in and publish
///
///   ropewalk interface proto geometry_msgs/msg/Twist >twist.yaml
///   ropewalk topic pub /cmd_vel geometry_msgs/msg/Twist --file twist.yaml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Proto {
    /// The type; for a service the request is printed, for an action the goal.
    #[arg(value_name = "TYPE")]
    name: String,
    /// Accepted for compatibility with ros2; the output has no quotes anyway.
    #[arg(long, hide = true)]
    no_quotes: bool,
}

pub(super) fn run(search: &Search, options: &Show) -> Outcome {
    let sections = lookup::find(search, &options.name)?;
    let texts: Vec<_> = sections
        .iter()
        .map(|section| text(&section.ty, !options.no_comments))
        .collect();
    write!(crate::screen::stdout(), "{}", texts.join("---\n")).or_job("writing")
}

pub(super) fn proto(search: &Search, options: &Proto) -> Outcome {
    let sections = lookup::find(search, &options.name)?;
    let first = sections
        .first()
        .map(|section| section.default.to_yaml(schema::Show::ALL));
    let text = first.unwrap_or_default();
    writeln!(crate::screen::stdout(), "{}", text.trim_end()).or_job("writing")
}

/// The definition as written, or without comments; below each field of another type, the fields of that type.
fn text(ty: &MessageType, comments: bool) -> String {
    let mut out = String::new();
    if !comments {
        nested(ty, 0, &mut out);
        return out;
    }
    for line in ty.text().trim_end().lines() {
        out += &format!("{}\n", line.trim_end());
        let field = ty.fields().iter().find(|f| Some(f.name()) == field_name(line));
        if let Some(FieldType::Message(inner)) = field.map(|f| f.ty()) {
            nested(inner, 1, &mut out);
        }
    }
    out
}

/// The name of the field that a line declares.
fn field_name(line: &str) -> Option<&str> {
    let code = line.split('#').next()?;
    let mut words = code.split_whitespace();
    let (_, name) = (words.next()?, words.next()?);
    let is_constant = name.contains('=') || words.next().is_some_and(|next| next.starts_with('='));
    (!is_constant).then_some(name)
}

/// Constants and fields; below each field of another type, the fields of that type.
fn nested(ty: &MessageType, indent: usize, out: &mut String) {
    let space = "\t".repeat(indent);
    for c in ty.constants() {
        *out += &format!("{space}{} {}={}\n", c.ty, c.name, c.value);
    }
    for f in ty.fields() {
        let default = f.default_text().map(|d| format!(" {d}")).unwrap_or_default();
        *out += &format!("{space}{} {}{default}\n", f.type_text(), f.name());
        if let FieldType::Message(inner) = f.ty() {
            nested(inner, indent + 1, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk::{Flavour, Registry};

    #[test]
    fn fields_of_types_stand_below_theirs() {
        let mut registry = Registry::new(Flavour::Ros2);
        let definition = "# A place.\nuint8 A=1\nstd_msgs/Header header  # when and where\nfloat64[] x\n";
        registry.add_message("a/Place", definition).expect("a definition");
        let schema = registry.schema("a/Place").expect("a type");
        let nested =
            "\tbuiltin_interfaces/Time stamp\n\t\tint32 sec\n\t\tuint32 nanosec\n\tstring frame_id\n";
        let shown = text(schema.message_type(), true);
        assert_eq!(
            shown,
            format!("# A place.\nuint8 A=1\nstd_msgs/Header header  # when and where\n{nested}float64[] x\n")
        );
        let plain = text(schema.message_type(), false);
        assert_eq!(
            plain,
            format!("uint8 A=1\nstd_msgs/Header header\n{nested}float64[] x\n")
        );
    }
}

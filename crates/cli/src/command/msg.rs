//! `ropewalk msg`: message types.

use crate::failure::{OrFail, Outcome};
use crate::types::SearchPath;
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::Write;
use terminal::table::{Align, Table};

/// Show message types: fields, hashes, and their control and data parts.
///
/// Types of the standard packages are built in. Others are looked up in --path, ROS_PACKAGE_PATH and /usr/share (with
/// --ros2: AMENT_PREFIX_PATH).
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    search: SearchPath,
}

#[derive(Subcommand)]
enum What {
    /// Print constants and fields, nested types indented.
    Show {
        /// Type name, such as sensor_msgs/LaserScan.
        #[arg(value_name = "TYPE")]
        name: String,
    },
    /// List the types of messages; `ropewalk interface list` also lists services and actions.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the MD5 sum, as `rosmsg md5` does; with --ros2 the RIHS01 hash. Use --srv for a service.
    Md5 {
        /// Type name, such as sensor_msgs/LaserScan.
        #[arg(value_name = "TYPE")]
        name: String,
        /// The type is a service.
        #[arg(long)]
        srv: bool,
    },
    /// Print which arrays become data parts, written once into shared memory.
    Parts {
        /// Type name, such as sensor_msgs/LaserScan.
        #[arg(value_name = "TYPE")]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    let text = match &options.what {
        What::Show { name } => options.search.schema(name)?.canonical_text(),
        What::List { json } => list(&options.search.registry(), *json),
        What::Md5 { name, srv: true } => options.search.registry().service(name).or_input()?.md5_hex() + "\n",
        What::Md5 { name, srv: false } => {
            let schema = options.search.schema(name)?;
            let sum = if schema.flavour() == schema::Flavour::Ros2 {
                schema.rihs01()
            } else {
                schema.md5_hex()
            };
            sum + "\n"
        }
        What::Parts { name, json } => parts(&options.search.schema(name)?, *json),
    };
    crate::screen::stdout()
        .write_all(text.as_bytes())
        .or_job("writing")
}

/// Types that are built in, a line each. Folders are searched by name only.
fn list(registry: &schema::Registry, as_json: bool) -> String {
    let names: Vec<_> = registry.names().iter().map(ToString::to_string).collect();
    if as_json {
        return format!("{:#}\n", json!({ "messages": names }));
    }
    names.iter().map(|name| format!("{name}\n")).collect()
}

fn parts(schema: &schema::Schema, as_json: bool) -> String {
    let parts = schema.parts();
    if as_json {
        let parts: Vec<_> = (parts.iter())
            .map(|p| {
                json!({
                    "path": p.path, "element_type": p.element_type, "element_bytes": p.element_size,
                    "element_align": p.element_align, "ros1_bytes": p.packed_size, "padded": p.padded,
                    "bound": p.bound,
                })
            })
            .collect();
        let all = json!({ "type": schema.name(), "threshold_bytes": schema.threshold(), "parts": parts });
        return format!("{all:#}\n");
    }
    if parts.is_empty() {
        return format!("{}: everything is in the control part\n", schema.name());
    }
    let mut table = Table::new(&[
        ("data part", Align::Left),
        ("element", Align::Left),
        ("bytes", Align::Right),
        ("", Align::Left),
    ]);
    for p in &parts {
        let note = if p.padded {
            format!("padded, {} bytes in ROS 1", p.packed_size)
        } else {
            String::new()
        };
        table.row([
            p.path.clone(),
            p.element_type.clone(),
            p.element_size.to_string(),
            note,
        ]);
    }
    let mut text = table.lines().join("\n");
    text.push_str(&format!(
        "\narrays of less than {} bytes and all other fields stay in the control part\n",
        schema.threshold()
    ));
    text
}

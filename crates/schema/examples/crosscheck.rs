//! Answers questions about definitions and messages, one JSON object a line on stdin, one on stdout.
//!
//! `tests/schema/crosscheck.py` drives it to compare this crate with ROS 1's own tools and with rosbags.
//!
//! | request | answer |
//! |---|---|
//! | `{"op":"open","flavour":"ros1","env":false,"folders":[…],"messages":{name:text},"services":{name:text}}` | `{}` |
//! | `{"op":"message","type":name}` | `md5`, `rihs01`, `definition` |
//! | `{"op":"service","type":name}` | `md5`, `definition` |
//! | `{"op":"embedded","type":name,"text":text}` | `md5`, `definition` |
//! | `{"op":"convert","type":name,"ros1":hex,"cdr":hex,"cdr_be":hex}` | `cdr`: hex, `parts`: lengths; checks all ways between the forms itself |
//!
//! An answer with `error` states the failure.

use schema::{Flavour, Registry, Schema, Show};
use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    let (stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut registry = Registry::new(Flavour::Ros1);
    for line in stdin.lines() {
        let reply = serde_json::from_str(&line?)
            .map_err(|e| e.to_string())
            .and_then(|request| answer(&mut registry, &request))
            .unwrap_or_else(|e| json!({ "error": e }));
        writeln!(stdout, "{reply}")?;
        stdout.flush()?;
    }
    Ok(())
}

fn answer(registry: &mut Registry, request: &Json) -> Result<Json, String> {
    let text = |key: &str| request[key].as_str().ok_or(format!("no `{key}` in the request"));
    match text("op")? {
        "open" => {
            *registry = open(request)?;
            Ok(json!({}))
        }
        "message" => Ok(sums(&registry.schema(text("type")?).map_err(|e| e.to_string())?)),
        "embedded" => {
            let mut registry = Registry::new(registry.flavour());
            registry
                .add_embedded(text("type")?, text("text")?)
                .map_err(|e| e.to_string())?;
            Ok(sums(&registry.schema(text("type")?).map_err(|e| e.to_string())?))
        }
        "service" => {
            let service = registry.service(text("type")?).map_err(|e| e.to_string())?;
            Ok(json!({ "md5": service.md5_hex(), "definition": service.definition() }))
        }
        "convert" => {
            let schema = registry.schema(text("type")?).map_err(|e| e.to_string())?;
            convert(
                &schema,
                &unhex(text("ros1")?)?,
                &unhex(text("cdr")?)?,
                &unhex(text("cdr_be")?)?,
            )
        }
        other => Err(format!("unknown op {other}")),
    }
}

fn open(request: &Json) -> Result<Registry, String> {
    let flavour = match request["flavour"].as_str() {
        Some("ros1") => Flavour::Ros1,
        Some("ros2") => Flavour::Ros2,
        other => return Err(format!("flavour {other:?}")),
    };
    let mut registry = match request["env"].as_bool() {
        Some(true) => Registry::from_env(flavour),
        _ => Registry::new(flavour),
    };
    for folder in request["folders"].as_array().into_iter().flatten() {
        registry.add_folder(folder.as_str().ok_or("a folder is no string")?);
    }
    for (name, text) in request["messages"].as_object().into_iter().flatten() {
        registry
            .add_message(name, text.as_str().ok_or("no text")?)
            .map_err(|e| e.to_string())?;
    }
    for (name, text) in request["services"].as_object().into_iter().flatten() {
        registry
            .add_service(name, text.as_str().ok_or("no text")?)
            .map_err(|e| e.to_string())?;
    }
    Ok(registry)
}

fn sums(schema: &Schema) -> Json {
    let parts: Vec<_> = schema.parts().into_iter().map(|p| p.path).collect();
    json!({ "md5": schema.md5_hex(), "rihs01": schema.rihs01(), "definition": schema.definition(), "parts": parts })
}

/// Converts between all encodings and compares the results.
fn convert(schema: &Schema, ros1: &[u8], cdr: &[u8], cdr_be: &[u8]) -> Result<Json, String> {
    let fail = |what: &str, e: &dyn std::fmt::Display| format!("{}: {what}: {e}", schema.name());
    let same = |what: &str, a: &[u8], b: &[u8]| match a == b {
        true => Ok(()),
        false => Err(fail(what, &format!("differs\n  {}\n  {}", hex(a), hex(b)))),
    };
    let mut lens = Vec::new();
    let mut written = Vec::new();
    for threshold in [0, usize::MAX, schema::DEFAULT_THRESHOLD] {
        let schema = schema.clone().with_threshold(threshold);
        let split = schema.split_ros1(ros1).map_err(|e| fail("split_ros1", &e))?;
        let parts = split.to_parts();
        lens = split.sizes().part_lens;
        let (control, slices) = (&parts.control, parts.slices());
        let joined = schema
            .join_ros1(control, &slices)
            .map_err(|e| fail("join_ros1", &e))?;
        same("ROS 1 to parts to ROS 1", ros1, &joined)?;
        written = schema
            .join_cdr(control, &slices)
            .map_err(|e| fail("join_cdr", &e))?;
        for (what, source) in [
            ("own CDR", &written[..]),
            ("given CDR", cdr),
            ("big-endian CDR", cdr_be),
        ] {
            let back = schema.split_cdr(source).map_err(|e| fail(what, &e))?.to_parts();
            same(what, control, &back.control)?;
            if parts.parts != back.parts {
                return Err(fail(what, &"data parts differ"));
            }
        }
        let value = schema.decode(control, &slices).map_err(|e| fail("decode", &e))?;
        let encoded = schema.encode_ros1(&value).map_err(|e| fail("encode", &e))?;
        same("parts to value to ROS 1", ros1, &encoded)?;
    }
    let value = schema.decode_ros1(ros1).map_err(|e| fail("decode", &e))?;
    let yaml = value.to_yaml(Show::ALL);
    let read = schema
        .value_from_yaml(&yaml)
        .map_err(|e| fail("own YAML", &format!("{e}\n{yaml}")))?;
    same(
        "value to YAML to value",
        ros1,
        &schema.encode_ros1(&read).map_err(|e| fail("encode", &e))?,
    )?;
    let read = schema
        .value_from_json(&value.to_json(Show::ALL))
        .map_err(|e| fail("own JSON", &e))?;
    same(
        "value to JSON to value",
        ros1,
        &schema.encode_ros1(&read).map_err(|e| fail("encode", &e))?,
    )?;
    Ok(json!({ "cdr": hex(&written), "parts": lens }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|d| d.len() % 2 == 0).ok_or("not hexadecimal")?;
    Ok(digits.chunks(2).map(|d| (d[0] * 16 + d[1]) as u8).collect())
}

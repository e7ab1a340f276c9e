//! `ropewalk interface list`, `package` and `packages`.

use super::kind::{Interface, Kind};
use super::{Search, lookup};
use crate::failure::{Failure, OrFail, Outcome};
use clap::Args;
use schema::{did_you_mean, nearest};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;

/// Kinds to list; all if none is chosen.
#[derive(Args)]
struct Kinds {
    /// Messages only.
    #[arg(short = 'm', long)]
    only_msgs: bool,
    /// Services only.
    #[arg(short = 's', long)]
    only_srvs: bool,
    /// Actions only.
    #[arg(short = 'a', long)]
    only_actions: bool,
}

/// Print the names of all types.
#[derive(Args)]
pub(super) struct List {
    #[command(flatten)]
    kinds: Kinds,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Print the types of a package: ropewalk interface package geometry_msgs
#[derive(Args)]
pub(super) struct Package {
    /// The package.
    package: String,
    #[command(flatten)]
    kinds: Kinds,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Print the packages that have types.
#[derive(Args)]
pub(super) struct Packages {
    #[command(flatten)]
    kinds: Kinds,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Kinds {
    fn has(&self, kind: Kind) -> bool {
        let is_said = match kind {
            Kind::Message => self.only_msgs,
            Kind::Service => self.only_srvs,
            Kind::Action => self.only_actions,
        };
        is_said || !(self.only_msgs || self.only_srvs || self.only_actions)
    }
}

pub(super) fn list(search: &Search, options: &List) -> Outcome {
    let all = lookup::all(search);
    let names = |kind: Kind| {
        let of = all.iter().filter(move |i: &&Interface| i.kind == kind);
        of.map(|i| i.shown(search.flavour())).collect::<Vec<_>>()
    };
    let mut out = crate::screen::stdout();
    let kinds = Kind::ALL.into_iter().filter(|kind| options.kinds.has(*kind));
    if options.json {
        let lists = kinds.map(|kind| (kind.heading().to_lowercase(), json!(names(kind))));
        return writeln!(out, "{:#}", serde_json::Value::Object(lists.collect())).or_job("writing");
    }
    for kind in kinds {
        writeln!(out, "{}:", kind.heading()).or_job("writing")?;
        names(kind)
            .iter()
            .try_for_each(|name| writeln!(out, "    {name}"))
            .or_job("writing")?;
    }
    Ok(())
}

pub(super) fn package(search: &Search, options: &Package) -> Outcome {
    let mut all = lookup::all(search);
    let package = &options.package;
    if !all.iter().any(|i| i.name.package() == package) {
        let near = nearest(package, all.iter().map(|i| i.name.package()));
        return Err(Failure::input(format_args!(
            "no package {package} has types here{}; `ropewalk interface packages` lists those that do",
            did_you_mean(near)
        )));
    }
    all.retain(|i| i.name.package() == package && options.kinds.has(i.kind));
    let names: Vec<_> = all.iter().map(|i| i.shown(search.flavour())).collect();
    if options.json {
        crate::screen::say!("{:#}", json!({ "package": package, "types": names }));
        return Ok(());
    }
    names.iter().for_each(|name| crate::screen::say!("{name}"));
    Ok(())
}

pub(super) fn packages(search: &Search, options: &Packages) -> Outcome {
    let mut all = lookup::all(search);
    all.retain(|i| options.kinds.has(i.kind));
    let packages: BTreeSet<_> = all.iter().map(|i| i.name.package()).collect();
    if options.json {
        crate::screen::say!("{:#}", json!({ "packages": packages }));
        return Ok(());
    }
    packages
        .iter()
        .for_each(|package| crate::screen::say!("{package}"));
    Ok(())
}

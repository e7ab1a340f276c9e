//! Finds definitions by name and builds schemas from them.

mod embedded;
mod resolve;
mod search;

use crate::definition::{Definition, Flavour};
use crate::limits::MAX_TYPES;
use crate::nearest::nearest;
use crate::parse::{self, Origin};
use crate::{DefinitionError, Schema, Service, TypeName, builtin};
use search::{Kind, SearchPath};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Definitions of one flavour, found by name.
///
/// A name is looked up first among the added definitions, then in the folders, then among the definitions of standard
/// packages in the crate. Reading the folders is the only input of this crate; it happens in [`schema`](Self::schema)
/// and [`service`](Self::service), blocks, and is not cached.
#[derive(Debug, Clone)]
pub struct Registry {
    flavour: Flavour,
    messages: BTreeMap<TypeName, Definition>,
    /// Their folder and text.
    services: BTreeMap<TypeName, (&'static str, String)>,
    search: SearchPath,
}

impl Registry {
    /// A registry with only the definitions of standard packages.
    pub fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            messages: BTreeMap::new(),
            services: BTreeMap::new(),
            search: SearchPath::default(),
        }
    }

    /// A registry with the definitions of standard packages and the folders of an installed ROS: for ROS 1
    /// `ROS_PACKAGE_PATH` and `/usr/share`, for ROS 2 `AMENT_PREFIX_PATH`.
    pub fn from_env(flavour: Flavour) -> Self {
        Self {
            search: SearchPath::from_env(flavour),
            ..Self::new(flavour)
        }
    }

    /// Adds a folder to search, before the folders added earlier, for `package/msg/Type.msg` at most four levels down,
    /// for `package/Type.msg`, and, if `folder` is named like the package, for `msg/Type.msg`.
    pub fn add_folder(&mut self, folder: impl Into<PathBuf>) {
        self.search.add(folder.into());
    }

    /// The flavour of all its definitions.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Adds or replaces one message definition. A folder in the name becomes part of [`Schema::ros2_name`] and
    /// [`Schema::rihs01`]: `srv` for a service's messages, `action` for an action's.
    ///
    /// # Errors
    /// If the name or the text is invalid; types in it are looked up only later.
    pub fn add_message(&mut self, name: &str, text: &str) -> Result<(), DefinitionError> {
        let folder = TypeName::folder(name);
        let name = TypeName::parse(name)?;
        let file = name.to_string();
        let def = parse::message(name, text, self.flavour, Origin { file: &file, line: 0 })?;
        self.insert(Definition { folder, ..def })
    }

    /// Adds or replaces one service definition.
    ///
    /// # Errors
    /// If the name or the text is invalid; types in it are looked up only later.
    pub fn add_service(&mut self, name: &str, text: &str) -> Result<(), DefinitionError> {
        let folder = TypeName::service_folder(name);
        let name = TypeName::parse(name)?;
        parse::service(&name, folder, text, self.flavour, &name.to_string())?;
        if self.services.len() >= MAX_TYPES {
            return Err(too_many(&name));
        }
        self.services.insert(name, (folder, text.to_owned()));
        Ok(())
    }

    /// Adds the parts of an action. In ROS 1 these are the messages `…Goal`, `…Result`, `…Feedback`, their `…Action…`
    /// wrappers and `…Action`; in ROS 2 `…_Goal`, `…_Result`, `…_Feedback`, `…_FeedbackMessage`, and the services
    /// `…_SendGoal` and `…_GetResult`.
    ///
    /// # Errors
    /// If the name or the text is invalid.
    pub fn add_action(&mut self, name: &str, text: &str) -> Result<(), DefinitionError> {
        let name = TypeName::parse(name)?;
        for def in parse::action(&name, text, self.flavour, &name.to_string())? {
            self.insert(def)?;
        }
        if self.flavour == Flavour::Ros2 {
            for suffix in ["SendGoal", "GetResult"] {
                let text = parse::action_service(&name, suffix).unwrap_or_default();
                self.add_service(
                    &format!("{}/action/{}_{suffix}", name.package(), name.name()),
                    &text,
                )?;
            }
        }
        Ok(())
    }

    /// Adds a definition and all its dependencies in one text, as stored in bags and MCAP files: parts separated by a
    /// line of `=` and a line `MSG: package/Type`.
    ///
    /// # Errors
    /// If the name or the text is invalid. Nothing is added then.
    pub fn add_embedded(&mut self, name: &str, text: &str) -> Result<(), DefinitionError> {
        let root = TypeName::parse(name)?;
        let folder = TypeName::folder(name);
        for mut def in embedded::parse(root.clone(), text, self.flavour)? {
            // The folder is part of a ROS 2 name; the names in separators lack it. Only names that ROS 2 generates have
            // underscores: those of a service's or an action's messages.
            let end = |suffix| def.name.name().ends_with(suffix);
            let sibling = match folder {
                "action" => def.name.package() == root.package() && def.name.name().contains('_'),
                _ => end("_Request") || end("_Response"),
            };
            if folder != "msg" && (def.name == root || sibling) {
                def.folder = folder;
            }
            self.insert(def)?;
        }
        Ok(())
    }

    /// As [`add_embedded`](Self::add_embedded), for a service: its own text comes first.
    ///
    /// # Errors
    /// As [`add_embedded`](Self::add_embedded).
    pub fn add_embedded_service(&mut self, name: &str, text: &str) -> Result<(), DefinitionError> {
        let root = TypeName::parse(name)?;
        let (own, messages) = embedded::parse_service(root.clone(), text, self.flavour)?;
        self.add_service(name, own)?;
        let folder = TypeName::service_folder(name);
        for mut def in messages {
            if folder == "action" && def.name.package() == root.package() && def.name.name().contains('_') {
                def.folder = folder;
            }
            self.insert(def)?;
        }
        Ok(())
    }

    /// The schema of `name`, which is `package/Type` or `package/msg/Type`.
    ///
    /// # Errors
    /// If a definition is missing, unreadable or invalid, or if a type contains itself or is too large.
    pub fn schema(&self, name: &str) -> Result<Schema, DefinitionError> {
        let name = TypeName::parse(name)?;
        Ok(Schema::compile(
            resolve::Resolver::new(self).message(&name, None)?,
        ))
    }

    /// The schemas of the service `name`, which is `package/Type` or `package/srv/Type`.
    ///
    /// # Errors
    /// As [`schema`](Self::schema).
    pub fn service(&self, name: &str) -> Result<Service, DefinitionError> {
        let name = TypeName::parse(name)?;
        let (folder, text, file) = match self.services.get(&name) {
            Some((folder, text)) => (*folder, text.clone(), name.to_string()),
            None => match self.search.find(&name, Kind::Service)? {
                Some((text, path)) => ("srv", text, path.display().to_string()),
                None => match builtin::find(self.flavour, &name, true) {
                    Some(text) => ("srv", text.to_owned(), name.to_string()),
                    None => {
                        let action = self.of_action(&name)?;
                        let text =
                            action.and_then(|(action, suffix, ..)| parse::action_service(&action, &suffix));
                        let text = text.ok_or_else(|| self.unknown(&name, None))?;
                        ("action", text, name.to_string())
                    }
                },
            },
        };
        let [request, response] = parse::service(&name, folder, &text, self.flavour, &file)?;
        let mut resolver = resolve::Resolver::new(self);
        let (request, response) = (resolver.root(request)?, resolver.root(response)?);
        Ok(Service::new(
            name,
            text,
            Schema::compile(request),
            Schema::compile(response),
        ))
    }

    /// Names of the messages that were added or are part of the crate, sorted; messages in folders are not listed.
    pub fn names(&self) -> Vec<TypeName> {
        let mut names: Vec<_> = self.messages.keys().cloned().collect();
        names.extend(builtin::names(self.flavour, false));
        names.sort();
        names.dedup();
        names
    }

    /// Names of the services that were added or are part of the crate, sorted; services in folders are not listed.
    pub fn service_names(&self) -> Vec<TypeName> {
        let mut names: Vec<_> = self.services.keys().cloned().collect();
        names.extend(builtin::names(self.flavour, true));
        names.sort();
        names.dedup();
        names
    }

    fn insert(&mut self, def: Definition) -> Result<(), DefinitionError> {
        if self.messages.len() >= MAX_TYPES && !self.messages.contains_key(&def.name) {
            return Err(too_many(&def.name));
        }
        self.messages.insert(def.name.clone(), def);
        Ok(())
    }

    /// One definition, from the first place that has it.
    fn definition(
        &self,
        name: &TypeName,
        needed_by: Option<&TypeName>,
    ) -> Result<Definition, DefinitionError> {
        if let Some(def) = self.messages.get(name) {
            return Ok(def.clone());
        }
        if let Some((text, path)) = self.search.find(name, Kind::Message)? {
            let file = path.display().to_string();
            return parse::message(name.clone(), &text, self.flavour, Origin { file: &file, line: 0 });
        }
        let Some(text) = builtin::find(self.flavour, name, false) else {
            let action = self.of_action(name)?;
            let parts =
                action.map(|(action, _, text, file)| parse::action(&action, &text, self.flavour, &file));
            let found = parts.transpose()?.into_iter().flatten().find(|d| d.name == *name);
            return found.ok_or_else(|| self.unknown(name, needed_by));
        };
        parse::message(
            name.clone(),
            text,
            self.flavour,
            Origin {
                file: &name.to_string(),
                line: 0,
            },
        )
    }

    /// The ROS 2 action that a message or service belongs to by its name: the action, the rest of the name, its text
    /// and file.
    fn of_action(
        &self,
        name: &TypeName,
    ) -> Result<Option<(TypeName, String, String, String)>, DefinitionError> {
        let Some((base, suffix)) = name
            .name()
            .rsplit_once('_')
            .filter(|_| self.flavour == Flavour::Ros2)
        else {
            return Ok(None);
        };
        let action = TypeName::join(name.package(), base);
        let found = self.search.find(&action, Kind::Action)?;
        Ok(found.map(|(text, path)| (action, suffix.to_owned(), text, path.display().to_string())))
    }

    /// A message or service that has a similar name.
    fn like(&self, name: &TypeName) -> Option<Box<str>> {
        let known = self.names().into_iter().chain(self.service_names());
        let known: Vec<_> = known.map(|n| n.to_string()).collect();
        nearest(&name.to_string(), known.iter().map(String::as_str)).map(Into::into)
    }

    fn unknown(&self, name: &TypeName, needed_by: Option<&TypeName>) -> DefinitionError {
        let folders = self.search.describe();
        let hint = match (self.flavour, folders.as_str()) {
            (flavour, "") => {
                format!("it is not one of the standard {flavour} definitions, and no folder was given")
            }
            (flavour, _) => format!("it is not one of the standard {flavour} definitions, nor in {folders}"),
        };
        DefinitionError::Unknown {
            near: self.like(name),
            name: name.to_string(),
            needed_by: needed_by.map(|n| n.to_string().into()),
            hint: hint.into(),
        }
    }
}

fn too_many(name: &TypeName) -> DefinitionError {
    DefinitionError::TooLarge {
        name: name.to_string(),
        what: "number of types in the registry",
        value: MAX_TYPES as u64 + 1,
        limit: MAX_TYPES as u64,
    }
}

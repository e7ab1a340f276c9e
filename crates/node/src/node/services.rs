//! Clients and servers.

use super::{Node, NodeError, flavour};
use crate::name::{self, NameError};
use crate::typed::{self, ServiceType};
use crate::{Callback, Client, Request, Server};
use bus::{ClientOptions, ServerOptions};
use schema::{Service, Value};

impl Node {
    /// Creates a client of the service `name`, whose requests and replies are generated structures ([`typed`]).
    /// Servers of another type are refused, and both sides record why. Returns at once; servers connect in the
    /// background ([`Client::wait_for_server`]).
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn client<S: ServiceType>(&self, name: &str) -> Result<Client<S>, NodeError> {
        self.client_with(name, ClientOptions::default())
    }

    /// Like [`Node::client`], with limits.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn client_with<S: ServiceType>(
        &self,
        name: &str,
        options: ClientOptions,
    ) -> Result<Client<S>, NodeError> {
        self.make_client(name, &of_structure::<S>(name)?, options)
    }

    /// Creates a client of the service `name` of type `schema`, which is known only at run time
    /// ([`Node::discover_service`]). Otherwise like [`Node::client`].
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_client(&self, name: &str, schema: &Service) -> Result<Client, NodeError> {
        self.dynamic_client_with(name, schema, ClientOptions::default())
    }

    /// Like [`Node::dynamic_client`], with limits.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_client_with(
        &self,
        name: &str,
        schema: &Service,
        options: ClientOptions,
    ) -> Result<Client, NodeError> {
        self.make_client(name, schema, options)
    }

    fn make_client<S>(
        &self,
        name: &str,
        schema: &Service,
        options: ClientOptions,
    ) -> Result<Client<S>, NodeError> {
        let kind = service_type(name, schema)?;
        let made = self.bus.client(kind.clone(), options);
        made.map(|c| Client::new(c, schema.clone()))
            .map_err(|source| NodeError::Create {
                topic: kind.service,
                source,
            })
    }

    /// Creates a server of the service `name`, whose requests the caller takes and answers as generated structures
    /// ([`typed`]). Returns at once; clients connect in the background.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn server<S: ServiceType>(&self, name: &str) -> Result<Server<S>, NodeError> {
        self.server_with(name, ServerOptions::default())
    }

    /// Like [`Node::server`], with queue depth, limits and a wait set.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn server_with<S: ServiceType>(
        &self,
        name: &str,
        options: ServerOptions,
    ) -> Result<Server<S>, NodeError> {
        self.make_server(name, &of_structure::<S>(name)?, options)
    }

    /// Creates a server of the service `name` of type `schema`, which is known only at run time. Otherwise like
    /// [`Node::server`].
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_server(&self, name: &str, schema: &Service) -> Result<Server, NodeError> {
        self.dynamic_server_with(name, schema, ServerOptions::default())
    }

    /// Like [`Node::dynamic_server`], with queue depth, limits and a wait set.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_server_with(
        &self,
        name: &str,
        schema: &Service,
        options: ServerOptions,
    ) -> Result<Server, NodeError> {
        self.make_server(name, schema, options)
    }

    fn make_server<S>(
        &self,
        name: &str,
        schema: &Service,
        options: ServerOptions,
    ) -> Result<Server<S>, NodeError> {
        let kind = service_type(name, schema)?;
        let made = self.bus.server(kind.clone(), options);
        made.map(|s| Server::new(s, schema.clone()))
            .map_err(|source| NodeError::Create {
                topic: kind.service,
                source,
            })
    }

    /// Serves the service `name`: answers every request with the result of `f`, on its own thread, until the
    /// [`Callback`] is dropped. The client receives an error of `f`.
    ///
    /// # Errors
    /// As for [`Node::publisher`]; [`NodeError::Thread`].
    pub fn service<S: ServiceType>(
        &self,
        name: &str,
        f: impl FnMut(S::Request<'_>) -> Result<S::Response<'static>, String> + Send + 'static,
    ) -> Result<Callback, NodeError> {
        let server = self.server::<S>(name)?;
        server.callback(f).map_err(NodeError::Thread)
    }

    /// Like [`Node::service`], for the type `schema`, which is known only at run time.
    ///
    /// # Errors
    /// As for [`Node::service`].
    pub fn dynamic_service(
        &self,
        name: &str,
        schema: &Service,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> Result<Callback, NodeError> {
        let server = self.dynamic_server(name, schema)?;
        server.callback(f).map_err(NodeError::Thread)
    }
}

/// The type of a generated service.
fn of_structure<S: ServiceType>(name: &str) -> Result<Service, NodeError> {
    typed::service::<S>().map_err(|source| NodeError::Definition {
        topic: name.to_owned(),
        type_name: S::NAME.to_owned(),
        source,
    })
}

fn service_type(name: &str, schema: &Service) -> Result<bus::ServiceType, NameError> {
    Ok(bus::ServiceType {
        service: name::service(name)?,
        type_name: schema.name(),
        type_hash: schema.md5(),
        flavour: flavour(
            schema.request().flavour(),
            schema.type_hash(),
            schema.common_sum().unwrap_or_default(),
        ),
        definition: schema.definition().into(),
    })
}

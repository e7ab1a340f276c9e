//! Clients and servers.

use super::{Node, NodeError, flavour};
use crate::name::{self, NameError};
use crate::{Callback, Client, Request, Server};
use bus::{ClientOptions, ServerOptions, ServiceType};
use schema::{Service, Value};

impl Node {
    /// Creates a client of the service `name`. Servers of another type are refused, and both sides record
    /// why. Returns at once; servers connect in the background ([`Client::wait_for_server`]).
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn client(&self, name: &str, schema: &Service) -> Result<Client, NodeError> {
        self.client_with(name, schema, ClientOptions::default())
    }

    /// Like [`Node::client`], with limits.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn client_with(
        &self,
        name: &str,
        schema: &Service,
        options: ClientOptions,
    ) -> Result<Client, NodeError> {
        let kind = service_type(name, schema)?;
        let made = self.bus.client(kind.clone(), options);
        made.map(|c| Client::new(c, schema.clone()))
            .map_err(|source| NodeError::Create {
                topic: kind.service,
                source,
            })
    }

    /// Creates a server of the service `name`, whose requests the caller takes. Returns at once; clients
    /// connect in the background.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn server(&self, name: &str, schema: &Service) -> Result<Server, NodeError> {
        self.server_with(name, schema, ServerOptions::default())
    }

    /// Like [`Node::server`], with queue depth, limits and a wait set.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn server_with(
        &self,
        name: &str,
        schema: &Service,
        options: ServerOptions,
    ) -> Result<Server, NodeError> {
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
    pub fn service(
        &self,
        name: &str,
        schema: &Service,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> Result<Callback, NodeError> {
        self.server(name, schema)?.callback(f).map_err(NodeError::Thread)
    }
}

fn service_type(name: &str, schema: &Service) -> Result<ServiceType, NameError> {
    Ok(ServiceType {
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

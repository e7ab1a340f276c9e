//! Access to a web server of this command, and its address.

use crate::failure::{Failure, OrFail};
use crate::screen::tell;
use clap::Args;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use web::{Access, Role, Server, ServerError, ServerOptions, Site, Tls, Token};

/// The longest file of tokens, in bytes.
const MAX_FILE: u64 = 64 << 10;

#[derive(Args)]
pub(crate) struct Reach {
    /// Address to listen at. 0.0.0.0 means all addresses of this host, and needs a token.
    #[arg(long, alias = "address", value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// A token and its role (view, operate, drive; default view). Other users of this machine can see it in the list of
    /// processes, unlike the tokens of --token-file (may be repeated).
    #[arg(long = "token", value_name = "[ROLE=]TOKEN")]
    tokens: Vec<String>,
    /// A file with one [ROLE=]TOKEN per line.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A web site whose pages may connect, besides the default ones (may be repeated).
    #[arg(long = "origin", value_name = "URL")]
    origins: Vec<String>,
    #[command(flatten)]
    certificate: Certificate,
}

/// A certificate with which a web server encrypts.
#[derive(Args, Clone)]
pub(crate) struct Certificate {
    /// Encrypt (https, wss) with the certificate in this PEM file, followed by its chain.
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// The certificate's private key, a PEM file without a passphrase.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
}

impl Certificate {
    /// The certificate, if one is given.
    pub(crate) fn load(&self) -> Result<Option<Tls>, Failure> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Tls::load(certificate, key).map(Some).or_input(),
            _ => Ok(None),
        }
    }
}

/// Access to a server, and its encryption.
pub(crate) struct Guard {
    pub(crate) access: Access,
    pub(crate) tls: Option<Tls>,
}

impl Guard {
    /// `https` or `http`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl Reach {
    /// Access of clients, and the certificate.
    pub(crate) fn guard(&self) -> Result<Guard, Failure> {
        let mut access = Access::new(&self.origins).or_input()?;
        let mut lines = self.tokens.clone();
        if let Some(file) = &self.token_file {
            lines.extend(token_file(file)?);
        }
        for line in lines {
            let (role, token) = line.split_once('=').unwrap_or(("view", &line));
            let role = Role::of_name(role).ok_or_else(|| {
                Failure::input("a token's role must be view, operate or drive: write view=TOKEN")
            })?;
            access = access.with_token(Token::new(role, token).or_input()?);
        }
        let tls = self.certificate.load()?;
        Ok(Guard { access, tls })
    }

    /// Serves `site` there.
    pub(crate) fn serve(&self, port: u16, guard: Guard, site: Arc<dyn Site>) -> Result<Server, Failure> {
        let is_open = !self.host.to_canonical().is_loopback() && guard.tls.is_none();
        let server = listen(SocketAddr::new(self.host, port), guard, site, "--port")?;
        if is_open {
            tell!(
                "warning: nothing is encrypted: anyone on the network path can read the token and all data \
                 shown; give --certificate and --key, or use a tunnel"
            );
        }
        Ok(server)
    }
}

/// Serves `site` at an address, which `option` changes.
pub(crate) fn listen(
    address: SocketAddr,
    guard: Guard,
    site: Arc<dyn Site>,
    option: &str,
) -> Result<Server, Failure> {
    let options = ServerOptions::new(address, guard.access).with_tls(guard.tls);
    Server::start(options, site).map_err(|e| match e {
        ServerError::Open(_) => Failure::input(format_args!(
            "{e}: give --token or --token-file, or leave --host out"
        )),
        ServerError::Listen { .. } => {
            Failure::job(format_args!("{e}: another program may use it; try {option}"))
        }
        e => Failure::job(e),
    })
}

/// The host as people type it into an address.
pub(crate) fn shown_host(address: SocketAddr) -> String {
    match address.ip() {
        ip if ip.is_unspecified() => "THIS-HOST".to_owned(),
        ip if ip.is_loopback() => "localhost".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        ip => ip.to_string(),
    }
}

fn token_file(path: &Path) -> Result<Vec<String>, Failure> {
    let fail =
        |problem: &dyn std::fmt::Display| Failure::input(format_args!("{}: {problem}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| fail(&e))?;
    if meta.len() > MAX_FILE {
        return Err(fail(&"it is too long for a file of tokens"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| fail(&e))?;
    let lines = text.lines().map(str::trim);
    let tokens: Vec<_> = lines
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(str::to_owned)
        .collect();
    match tokens.is_empty() {
        true => Err(fail(&"it contains no token: write one [ROLE=]TOKEN per line")),
        false => Ok(tokens),
    }
}

//! A wire between two hosts of a lab without emulation: as fast as the machine.

use crate::kit::error::RunError;
use crate::kit::site::Site;
use std::time::Duration;

const DEVICE: &str = "wire";
const ADDRESSES: [&str; 2] = ["10.78.0.1", "10.78.0.2"];
const PATIENCE: Duration = Duration::from_secs(10);

impl Site<'_> {
    /// Joins two hosts by a pair of virtual Ethernet devices. From then on, the hosts' addresses are those on the wire.
    /// It ends with the lab.
    ///
    /// # Errors
    /// [`RunError`] if `ip` cannot create it, or was stopped.
    pub(crate) fn wire(&mut self, hosts: [&str; 2]) -> Result<(), RunError> {
        self.pair(hosts[0], DEVICE, hosts[1])?;
        for (host, address) in hosts.into_iter().zip(ADDRESSES) {
            self.address_on_wire(host, address)?;
        }
        Ok(())
    }

    /// Creates a pair of devices, one named `device` on `host`, and one named [`DEVICE`] on `other`.
    fn pair(&self, host: &str, device: &str, other: &str) -> Result<(), RunError> {
        // `ip` identifies another network namespace by a process in it.
        let place = self
            .ground
            .folder
            .path()
            .join(format!("{}-{other}-wire", self.lab.name()));
        let shown = place.display();
        let stay = format!("echo $$ > '{shown}.new' && mv '{shown}.new' '{shown}' && exec sleep 60");
        let stay = self.start(other, &["sh", "-c", &stay])?;
        let wait = format!("until test -e '{shown}'; do sleep 0.02; done; cat '{shown}'");
        let pid = self.hear(host, &["sh", "-c", &wait], PATIENCE)?;
        let pair = ["type", "veth", "peer", "name", DEVICE, "netns", pid.trim()];
        self.hear(
            host,
            &[&["ip", "link", "add", device][..], &pair].concat(),
            PATIENCE,
        )?;
        drop(stay);
        Ok(())
    }

    fn address_on_wire(&mut self, host: &str, address: &str) -> Result<(), RunError> {
        let network = format!("{address}/24");
        for words in [
            ["address", "add", &network, "dev", DEVICE],
            ["link", "set", "dev", DEVICE, "up"],
        ] {
            self.hear(host, &[&["ip"], &words[..]].concat(), PATIENCE)?;
        }
        self.wired.push((host.to_owned(), address.to_owned()));
        Ok(())
    }

    /// Joins hosts by wires without a limit: two directly, more by a bridge on another host, which `hub` names.
    ///
    /// # Errors
    /// As [`Site::wire`].
    pub(crate) fn wires(&mut self, hosts: &[String], hub: &str) -> Result<(), RunError> {
        if let [one, other] = hosts {
            return self.wire([one, other]);
        }
        let bridge = "bridge";
        self.hear(hub, &["ip", "link", "add", bridge, "type", "bridge"], PATIENCE)?;
        self.hear(hub, &["ip", "link", "set", "dev", bridge, "up"], PATIENCE)?;
        for (i, host) in hosts.iter().enumerate() {
            let end = format!("port{i}");
            self.pair(hub, &end, host)?;
            self.hear(
                hub,
                &["ip", "link", "set", "dev", &end, "master", bridge, "up"],
                PATIENCE,
            )?;
            self.address_on_wire(host, &format!("10.78.0.{}", i + 1))?;
        }
        Ok(())
    }

    /// Returns whether hosts have a wire.
    pub(crate) fn is_wired(&self) -> bool {
        !self.wired.is_empty()
    }
}

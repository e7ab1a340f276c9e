//! A wire between two hosts of a lab that nobody emulates: it is as quick as the machine.

use super::site::Site;
use crate::ipc::error::RunError;
use std::time::Duration;

const DEVICE: &str = "wire";
const ADDRESSES: [&str; 2] = ["10.78.0.1", "10.78.0.2"];
const PATIENCE: Duration = Duration::from_secs(10);

impl Site<'_> {
    /// Joins two hosts by a pair of virtual Ethernet devices. From now on their addresses are those on it. It ends with
    /// the lab.
    ///
    /// # Errors
    /// [`RunError`] if `ip` cannot make it, or was stopped.
    pub(crate) fn wire(&mut self, hosts: [&str; 2]) -> Result<(), RunError> {
        // `ip` knows another network namespace by a process in it.
        let place = self
            .ground
            .folder
            .path()
            .join(format!("{}-wire", self.lab.name()));
        let shown = place.display();
        let stay = format!("echo $$ > '{shown}.new' && mv '{shown}.new' '{shown}' && exec sleep 60");
        let stay = self.start(hosts[1], &["sh", "-c", &stay])?;
        let wait = format!("until test -e '{shown}'; do sleep 0.02; done; cat '{shown}'");
        let pid = self.hear(hosts[0], &["sh", "-c", &wait], PATIENCE)?;
        let pair = ["type", "veth", "peer", "name", DEVICE, "netns", pid.trim()];
        self.hear(
            hosts[0],
            &[&["ip", "link", "add", DEVICE][..], &pair].concat(),
            PATIENCE,
        )?;
        drop(stay);
        for (host, address) in hosts.into_iter().zip(ADDRESSES) {
            let network = format!("{address}/24");
            for words in [
                ["address", "add", &network, "dev", DEVICE],
                ["link", "set", "dev", DEVICE, "up"],
            ] {
                self.hear(host, &[&["ip"], &words[..]].concat(), PATIENCE)?;
            }
            self.wired.push((host.to_owned(), address.to_owned()));
        }
        Ok(())
    }

    /// Whether hosts have a wire.
    pub(crate) fn is_wired(&self) -> bool {
        !self.wired.is_empty()
    }
}

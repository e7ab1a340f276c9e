#!/bin/sh
# The systemd unit of a link starts, restarts after a kill, stops, and does not restart with an invalid configuration. It also stops if the
# package is removed.
set -eu
unit=ropewalk-link@robot
configure() {
    cat >/etc/ropewalk/robot.yaml <<'YAML'
host: robot
radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}
peers: [{name: base, address: '127.0.0.1:7401'}]
topics: [{name: /scan, direction: out}]
YAML
}
configure
eventually() {
    for _ in $(seq 1200); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    echo "not within 120 s: $*"
    "$@" || true
    systemctl status --no-pager "$unit" || true
    journalctl --no-pager -n 30 -u "$unit"
    exit 1
}
pid() { systemctl show -p MainPID --value "$unit"; }
status() { ROPEWALK_RUNTIME_DIR=/run/ropewalk ROPEWALK_GROUP=$(getent group ropewalk | cut -d: -f3) ropewalk link status; }
is_new() { [ "$(pid)" != "$1" ] && status; }
is_failed() { [ "$(systemctl is-active "$unit")" = failed ]; }

systemctl start "$unit"
eventually status
first=$(pid)
kill -9 "$first"
eventually is_new "$first"
systemctl stop "$unit"
[ "$(systemctl show -p Result --value "$unit")" = success ]
echo 'host: [' >/etc/ropewalk/robot.yaml
systemctl start "$unit"
eventually is_failed
[ "$(systemctl show -p NRestarts --value "$unit")" = 0 ]
configure
systemctl reset-failed "$unit"
systemctl start "$unit"
eventually status
dpkg --remove ropewalk >/dev/null
[ "$(systemctl is-active "$unit")" = inactive ]
echo "units: done"

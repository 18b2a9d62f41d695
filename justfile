# Recipes for people; `.ci/run` is what must pass.

export PATH := `scripts/parts` + ":" + env("PATH")

# The program that trials start: `TOOLYARD_BIN`, or the release build, which `_program` makes.
program := absolute_path(env("TOOLYARD_BIN", env("CARGO_TARGET_DIR", "target") / "release/toolyard"))

# List the recipes
default:
    @just --list

_program:
    [ -n "${TOOLYARD_BIN:-}" ] || cargo build --release --locked -p toolyard

# The fast loop: format, lints, tests of the crates changed since BASE
check BASE="HEAD":
    scripts/crates/check-changed {{ BASE }}

# Every step of .ci/steps.toml in full; writes the result file that documents quote
nightly *ARGS:
    .ci/run --nightly --result docs/nightly/$(date +%F).json {{ ARGS }}

# Format, and apply the fixes that clippy suggests
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

# All tests, or those of `-p CRATE`, with a PostgreSQL of their own
test *ARGS:
    scripts/with-postgres cargo nextest run {{ ARGS }}

# Regenerate schema/toolyard.schema.json and docs/reference/run-events.schema.json
schema:
    UPDATE_SCHEMA=1 cargo nextest run -p toolyard -p toolyard-gateway the_schema_file_is_up_to_date

# Examples as crates outside the workspace, also beside diesel with another SQLite
examples:
    cargo build -p toolyard
    scripts/crates/example-crates --diesel

# API changes that need a new major version, against the last published crates (once there are any)
semver:
    cargo semver-checks --workspace --exclude search-eval

# What `cargo publish` would do, for every crate in order
publish-dry-run:
    cargo publish --dry-run --workspace --exclude search-eval

# Search quality on test sets (docs/search.md), with the plot
search-quality DATA:
    cargo build --release -p toolyard -p search-eval
    bench/search/quality {{ DATA }} --plot docs/search.svg

# Tokens a model spends per task with each surface (docs/surfaces.md)
task-tokens DATA="":
    {{ if DATA == "" { "" } else { "TOOLYARD_DATA=" + DATA } }} cargo run -q -p toolyard --example task_tokens

# Instruction counts of the hub and of the protocol (repeatable; figures in docs/benchmarks.md)
instructions:
    bench/load/instructions/hub
    bench/load/instructions/wire
    bench/load/instructions/metrics
    bench/load/instructions/policies

# One gateway with up to 10,000 servers and 1,000,000 tools: start, memory, calls, searches, one more server (figures in docs/scale.md)
sizes *ARGS: _program
    python3 -B bench/load/sizes/trial.py --binary {{ program }} {{ ARGS }}

# Instructions of a gateway call with and without traces
telemetry-cost:
    bench/load/instructions/telemetry

# Cost of journaling relative to the bare database engines
bench-journal:
    scripts/with-postgres cargo bench -p toolyard-store --bench journal_cost

# Crash campaign in full: kills at every write, lease contests, killed writers, tampered audit logs, suspended runs
crash KILLS="2000" CONTESTS="500" WRITER_KILLS="300" AUDIT_CASES="150" SUSPENDED="10000":
    TOOLYARD_RANDOM_KILLS={{ KILLS }} TOOLYARD_LEASE_CONTESTS={{ CONTESTS }} TOOLYARD_WRITER_KILLS={{ WRITER_KILLS }} \
        TOOLYARD_AUDIT_CASES={{ AUDIT_CASES }} \
        scripts/with-postgres cargo nextest run --profile campaign -p toolyard-store --test crash --test it --no-capture -E 'test(/^(kills|audit)::/)'
    TOOLYARD_EVERY_WRITE=1 TOOLYARD_SUSPENDED_RUNS={{ SUSPENDED }} \
        cargo nextest run --profile campaign -p toolyard-agent --test it --no-capture -E 'test(/^(crash|suspended)::/)'

# Parts written by hand beside libraries, as instruction counts: http-client, json, http-server
bench-handwritten *ARGS:
    cd bench/load/handwritten && cargo run --release --locked -- {{ ARGS }}

# Cost of a call through the gateway relative to nginx and to no gateway
bench-gateway *ARGS:
    bench/load/gateway/run {{ ARGS }}

# Latency of small calls while large results full of secrets arrive
large-results *ARGS: _program
    python3 -B bench/load/large_results.py --binary {{ program }} {{ ARGS }}

# The static release binary, and all packages of it: archive, .deb, .rpm, wheel, npm, image, SBOM (docs/releasing.md)
packages:
    scripts/release/build-release
    scripts/release/packages build

# Install, start and remove every package
packages-test:
    scripts/release/build-release
    scripts/release/packages test

# What the release workflow does for this machine, without publishing
release-dry-run:
    scripts/release/packages release-dry-run

# Two builds of the last commit in two folders must be the same bytes (two full builds)
reproducible:
    scripts/release/reproducible

# Release binary with its functions linked in order of use: needs less memory
ordered-binary:
    scripts/release/ordered-binary

# Times of the hub (comparable within one run only)
bench:
    cargo bench -p toolyard-hub --bench hub

# Sign in at a real OpenID Connect provider, and use a gateway with its tokens in both MCP revisions
oidc-flow:
    cargo build -p toolyard
    scripts/sign-in/oidc-flow

# Tokens of each caller at a tool server, exchanged at real providers (RFC 8693 and ID-JAG)
exchange-flow:
    cargo build -p toolyard
    scripts/sign-in/exchange-flow

# Two callers sign in to an upstream server, each with an account of its own at a real OpenID Connect provider
sign-in-flow:
    cargo build -p toolyard
    scripts/sign-in/sign-in-flow

# Two replicas restarted in turn under many clients of both revision families
replicas CLIENTS="1000" CALLS="100":
    cargo build --release -p toolyard
    TOOLYARD_BIN="${CARGO_TARGET_DIR:-target}/release/toolyard" TOOLYARD_CLIENTS={{ CLIENTS }} TOOLYARD_CALLS={{ CALLS }} \
        cargo nextest run --profile campaign -p toolyard --test serve --no-capture rolling_restart::

# Attack the release binary as an outsider would; prints what held
attacks *ARGS: _program
    TOOLYARD_BIN={{ program }} python3 -B bench/attacks {{ ARGS }}

# A server that is down for some time: how soon it is used again
outage SECONDS="45":
    TOOLYARD_OUTAGE_SECONDS={{ SECONDS }} cargo nextest run --profile campaign -p toolyard --test serve --no-capture soon_after_its_return

# Calls of one client beside many slow calls of another
fairness HOG_CALLS="1024" CALLS="20":
    TOOLYARD_HOG_CALLS={{ HOG_CALLS }} TOOLYARD_MEASURED_CALLS={{ CALLS }} \
        cargo nextest run --profile campaign -p toolyard --test serve --no-capture at_most_twice_as_slow

# Two replicas with PostgreSQL, driven beyond a quota of calls for more than a minute
quota-trial *ARGS: _program
    scripts/with-postgres python3 -B bench/faults/quotas.py {{ ARGS }}

# Two replicas of the release binary on PostgreSQL behind nginx, under load and faults (--quick, --only FAULT, --json FILE)
replicas-trial *ARGS: _program
    python3 -B bench/faults/replicas/trial.py --binary {{ program }} {{ ARGS }}

# Many callers of a stateful server: no crossed states, limits, memory of idle instances (--callers N, --limit N, --json FILE)
isolation-trial *ARGS: _program
    python3 -B bench/faults/isolation/trial.py --binary {{ program }} {{ ARGS }}

# Three gateways as one cluster on NATS and PostgreSQL: counters per caller, a killed owner, questions (--callers N, --questions N)
cluster-trial *ARGS: _program
    scripts/with-postgres python3 -B bench/faults/cluster/trial.py --binary {{ program }} {{ ARGS }}

# 1, 2 and 4 workers behind one gateway: calls per second of a tool that waits 20 ms (--concurrency N, --seconds S)
worker-trial *ARGS: _program
    scripts/with-postgres python3 -B bench/load/workers/trial.py --binary {{ program }} {{ ARGS }}

# Runs of agents in a cluster of three gateways: queued runs, a killed gateway, a ledger of side effects (--runs N, --lease SECONDS)
runs-trial *ARGS: _program
    scripts/with-postgres python3 -B bench/faults/cluster/runs_trial.py --binary {{ program }} {{ ARGS }}

# Two gateways that share the tools of a server: one start, announced changes, approvals, without NATS
catalogue-trial *ARGS: _program
    scripts/with-postgres python3 -B bench/faults/cluster/catalogue_trial.py --binary {{ program }} {{ ARGS }}

# What a call and a run cost in the store: rows, bytes, transactions and processor time (--calls N, --runs N)
store-cost *ARGS: _program
    scripts/with-postgres python3 -B bench/load/store_cost.py --binary {{ program }} {{ ARGS }}

# Fault laboratory: three gateways behind nginx, 20 servers, seeded faults, a checker (--seconds 60 or 1800, --seed N, --plant DEFECT; neighbours, outages, scaling, cases, check)
lab *ARGS: _program
    python3 -B bench/faults/lab/lab.py --binary {{ program }} {{ ARGS }}

# Callers of one gateway must not receive words of others (bench/faults/leaks)
leak-trial *ARGS: _program
    python3 -B bench/faults/leaks/trial.py --binary {{ program }} {{ ARGS }}

# Fuzz the tool-call parser for some minutes
fuzz-parser MINUTES="10":
    TOOLYARD_FUZZ_SECONDS=$(({{ MINUTES }} * 60)) cargo nextest run --profile campaign -p toolyard-model --test it --no-capture fuzz_parser::any_text

# Agent with a real small model (Qwen, 1.1 GB) at real servers and workbooks: all single calls and tasks
agent-quality *ARGS: _program
    bench/agents/run quality {{ ARGS }}

# Agent at real servers: tasks whose files and data are checked afterwards, with a small and with a scripted model (docs/agents.md)
agent-tasks *ARGS: _program
    bench/agents/run tasks {{ ARGS }}

# Test the web console in a browser: pages, accessibility, live updates, the scenario in Chinese, security.
console *ARGS:
    python3 -B crates/toolyard-console/tests/console {{ ARGS }}

# Build the books of docs/ and docs/zh (Chinese) into target/book and target/book/zh, with generated pages checked first
book:
    scripts/parts book >/dev/null
    scripts/docs/check-docs
    mdbook build docs/book
    mdbook build docs/zh
    scripts/docs/check-book

# Show the book at http://127.0.0.1:3000 and follow edits
book-serve:
    scripts/parts book >/dev/null
    mdbook serve docs/book --hostname 127.0.0.1

# Run every command of docs/start in an empty home folder with the release binary
book-starts *ARGS:
    cargo build --release --locked -p toolyard
    TOOLYARD_BIN="${CARGO_TARGET_DIR:-target}/release/toolyard" scripts/docs/book-starts {{ ARGS }}

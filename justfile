# Recipes for people; `.ci/run` is what must pass.

export PATH := `scripts/parts` + ":" + env("PATH")

# List the recipes
default:
    @just --list

# Everything CI does
ci:
    .ci/run

# Format and lint, mending what can be mended
tidy:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

# Tests only
test *ARGS:
    scripts/with-postgres cargo nextest run --workspace {{ ARGS }}

# Write schema/toolyard.schema.json anew
schema:
    UPDATE_SCHEMA=1 cargo nextest run -p toolyard the_schema_file_is_up_to_date

# The table of docs/search.md from the folder of the test sets, with the picture
search-quality DATA:
    cargo build --release -p toolyard
    scripts/search-quality {{ DATA }} --plot docs/search.svg

# What whole tasks cost a model with each surface (docs/surfaces.md); real tools and tasks with the folder of the test sets
task-tokens DATA="":
    {{ if DATA == "" { "" } else { "TOOLYARD_DATA=" + DATA } }} cargo run -q -p toolyard --example task_tokens

# Instruction counts of the hub and of the wire (repeatable; figures in docs/benchmarks.md)
instructions:
    scripts/instructions
    scripts/wire-instructions

# What journalling costs against the bare engines, as ratios of one run
bench-journal:
    scripts/with-postgres cargo bench -p toolyard-store --bench journal_cost

# Kill and pause processes at every point of the journal, more often than CI does
crash KILLS="2000" FIGHTS="500" FLOODS="300":
    TOOLYARD_RANDOM_KILLS={{ KILLS }} TOOLYARD_FIGHTS={{ FIGHTS }} TOOLYARD_FLOODS={{ FLOODS }} \
        scripts/with-postgres cargo nextest run -p toolyard-store --test crash --no-capture

# Our index beside tantivy, from 1,000 tools up; with the folder of the test sets on real tools and requests
bench-search *ARGS:
    cd bench/search && cargo run --release --locked -- {{ ARGS }}

# What a call through the gateway costs beside nginx and no gateway, as ratios of one run; on ../shared/bench when it is there
bench-gateway *ARGS:
    scripts/bench-gateway {{ ARGS }}

# The release binary with the functions that serving needs side by side: it takes less memory
ordered-binary:
    scripts/ordered-binary

# Times of the hub (only comparable within one run)
bench:
    cargo bench -p toolyard-hub --bench hub

# Two replicas restarted one after the other under many clients of both eras
replicas CLIENTS="1000" CALLS="100":
    cargo build --release -p toolyard
    TOOLYARD_BIN="${CARGO_TARGET_DIR:-target}/release/toolyard" TOOLYARD_CLIENTS={{ CLIENTS }} TOOLYARD_CALLS={{ CALLS }} \
        cargo nextest run -p toolyard --test replicas --no-capture

# Damage what models write, for so many minutes, and check what must hold of any text
fuzz-parser MINUTES="10":
    TOOLYARD_FUZZ_SECONDS=$(({{ MINUTES }} * 60)) cargo nextest run -p toolyard-model --test fuzz_parser --no-capture any_text

# Ask an agent with a real small model (Qwen, 1.1 GB) for single calls and tasks, and look at what it did to real workbooks
agent-quality *ARGS:
    cargo build --release -p toolyard
    scripts/agent-quality {{ ARGS }}

# Two commands first: `make demo` and `make test`. Each does its whole set-up, given a Rust toolchain.

TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: demo test up toolchain

# Three replicas as processes: one is killed, lies and is replaced, and every answer is checked. This build, and no
# other, has replicas that lie; it has its own directory so that it is never taken for a real one.
demo: toolchain
	@echo "Building (the first time takes some five to ten minutes on two cores) ..."
	@cargo build --locked --profile demo --package troth --features demo-adversary
	@$(TARGET)/demo/troth demo

# What must hold before a commit.
test: toolchain
	@cargo xtask check

# A cluster of three to play with, until Ctrl-C.
up: toolchain
	@cargo build --locked --quiet --release --package troth
	@echo "troth is $(TARGET)/release/troth: export PATH=\"$(abspath $(TARGET))/release:\$$PATH\""
	@$(TARGET)/release/troth up

toolchain:
	@command -v cargo >/dev/null || { \
	  echo "A Rust toolchain is missing (1.95 or later): https://rustup.rs, or"; \
	  echo "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh && . ~/.cargo/env"; exit 1; }
	@command -v cc >/dev/null || { echo "A C linker is missing: apt-get install build-essential"; exit 1; }

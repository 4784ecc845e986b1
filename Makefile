.PHONY: demo test test-all bench docs dist check-dist packages check-packages build lint

demo: ## clone a real project here and on the file systems that this machine can mount; a table; ARGS=--short for less
	@scripts/demo $(ARGS)

test: ## what a change needs: lints, all tests of Rust, the packages, the commands of the README
	@scripts/test

test-all: ## everything that CI runs: also other versions of Node and Python, test runners, old and other systems
	@scripts/test --all

bench: ## compare with cp, rsync, cpz, rmz, xcp; options: make bench ARGS='--fs xfs --runs 3'
	@bench/run $(ARGS)

docs: ## the documentation as a site, into target/book
	@cargo build --quiet -p calve && scripts/docs target/debug

dist: ## the files of a release for Linux, into target/dist
	@scripts/release/dist

check-dist: ## start them on Debian 11; as root
	@scripts/release/check-dist

build:
	cargo build --release -p calve

lint:
	cargo fmt --all --check
	rustfmt --check --edition 2024 node/native/src/lib.rs python/src/lib.rs crates/calve-core/src/strategy/*.rs
	cargo clippy --workspace --all-targets -- -D warnings

packages: ## the npm tarballs and the Python wheel for this machine, into dist/
	@scripts/release/packages

check-packages: ## start them on Debian 11; as root
	@scripts/release/check-packages

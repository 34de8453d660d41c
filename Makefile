# One entry for everything a developer or CI runs. Each target is a few lines; what is longer lives in scripts/.
# cargo's own variables (CARGO_TARGET_DIR, CARGO_BUILD_JOBS) are respected.

.DEFAULT_GOAL := help
.PHONY: help run test wheel site deb image cross test-packages lint bench torture

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## build larder with optimisation and start it; options go into ARGS, as in make run ARGS='-m 256'
	@cargo run --release --package larder -- $(ARGS)

test: ## install what the tests need where that is possible, then run every suite
	@scripts/install-test-needs
	@scripts/test

wheel: ## build the Python package larder-cache into target/wheels
	@scripts/wheel

site: ## build the pages as a site into target/site
	@scripts/site

deb: ## build the Debian packages larder, larder-bench and larder-memcached into target/deb
	@scripts/deb

image: ## build an OCI image into target/image
	@scripts/image

cross: ## build larder for arm64 on another machine, and try it under qemu
	@scripts/cross

test-packages: ## try the packages in a clean Debian: installed, upgraded under load, removed; it needs root and debootstrap
	@scripts/test-packages

lint: ## formatting, commit subjects, clippy, documentation, and the dependencies' licences and sources
	@scripts/lint

bench: ## measure beside fio and memcached, and write docs/results; ROW=S7 for one row, QUICK=1 to try it
	@scripts/bench $(if $(QUICK),--quick) $(ROW)

torture: ## kill a loaded daemon 50 times, and a simulated one at some thousand instants: nothing wrong comes back
	@scripts/torture

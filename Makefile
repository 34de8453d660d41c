# One entry for everything a developer or CI runs. Each target is a few lines; what is longer lives in scripts/.
# cargo's own variables (CARGO_TARGET_DIR, CARGO_BUILD_JOBS) are respected.

.DEFAULT_GOAL := help
.PHONY: help run test lint bench torture

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## build larder with optimisation and start it; options go into ARGS, as in make run ARGS='-m 256'
	@cargo run --release --package larder -- $(ARGS)

test: ## install what the tests need where that is possible, then run every suite
	@scripts/install-test-needs
	@scripts/test

lint: ## formatting, clippy, documentation, and the dependencies' licences and sources
	@scripts/lint

bench: ## not built yet: ends with exit code 2
	@echo "make bench needs larder-bench, which is not part of this tree yet" >&2; exit 2

torture: ## not built yet: ends with exit code 2
	@echo "make torture needs the torture tests, which are not part of this tree yet" >&2; exit 2

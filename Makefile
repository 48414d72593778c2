# Everything is set up by the targets themselves; Go is all that is needed.
GO ?= go
TOOLS = $(GO) tool -modfile=$(CURDIR)/tools/go.mod

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## the program, static, as ./belfry
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o belfry ./cmd/belfry

.PHONY: test
test: ## all tests, with the race detector, beside one throwaway server of each kind
	$(GO) run ./internal/testserver/with $(GO) test -race -timeout 15m $(TESTFLAGS) ./...
	cd bench && $(GO) test $(TESTFLAGS) ./...

.PHONY: lint
lint: ## static analysis, at pinned versions
	$(TOOLS) staticcheck ./...

.PHONY: vuln
vuln: ## known vulnerabilities, where their database can be reached
	@out=$$($(TOOLS) govulncheck ./... 2>&1); code=$$?; \
	case "$$out" in \
	*"fetching vulnerabilities"*|*"no such host"*|*"Forbidden"*|*"dial tcp"*|*"vuln.go.dev"*) \
		echo "the vulnerability database cannot be reached from here: not checked";; \
	*) echo "$$out"; exit $$code;; \
	esac

.PHONY: generate
generate: ## generated files
	$(GO) generate ./...

.PHONY: scale
scale: ## the laws of a store at full scale: a million messages waiting
	BELFRY_SCALE=full $(GO) test -timeout 60m -run '^TestStore$$' ./store/...

.PHONY: bench
bench: ## measurements beside the bare database and beside peers on durable throwaway servers
	$(GO) run ./internal/testserver/with -durable sh -c 'cd bench && $(GO) run . -systems memory,sqlite,postgres,redis,river,asynq all'

.PHONY: e2e-full
e2e-full: ## end-to-end tests at full scale: longer leases, more messages
	BELFRY_E2E=full $(GO) test -count=1 -timeout 60m ./cmd/belfry/e2e

.PHONY: torture
torture: ## kills during load, again and again
	BELFRY_E2E=torture $(GO) test -count=1 -timeout 120m -run Kill ./cmd/belfry/e2e

.PHONY: docker-check
docker-check: ## the image and the compose file, as far as they can be checked here
	$(GO) test -count=1 -run 'Compose|Image|Example' ./cmd/belfry/e2e
	@if docker compose version >/dev/null 2>&1; then API_KEY=$$(printf '%032d' 0) docker compose config -q; \
	else echo "docker compose is not here: the compose file was parsed by the tests alone"; fi
	@if docker info >/dev/null 2>&1; then docker build -t belfry .; \
	else echo "no Docker engine runs here: the image was not built"; fi

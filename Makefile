# connectlive: `make help` lists the targets.

# Variables of make demo: SECONDS=15 LISTEN=0.0.0.0 CODEC=h264 FILE=clip.mp4 OUT=out/demo, and ARGS for any other flag.
demo_flags = $(if $(SECONDS),--seconds '$(SECONDS)') $(if $(LISTEN),--listen '$(LISTEN)') \
	$(if $(CODEC),--codec '$(CODEC)') $(if $(FILE),--file '$(FILE)') $(if $(OUT),--out '$(OUT)') $(ARGS)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build install tarball demo docs test soak guest fuzz bench bench-janus check format clean

help: ## List the targets
	@echo "connectlive: publish cameras and files from Linux into real-time rooms"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'
	@echo
	@echo "make demo accepts SECONDS=15 LISTEN=0.0.0.0 CODEC=h264 FILE=clip.mp4 OUT=folder and ARGS='--any flag'."
	@echo "make install accepts PREFIX=/usr/local."
	@echo "make fuzz accepts SECONDS=60 and TARGET=name."
	@echo "make test and make guest accept FILTER='regular expression', which selects Swift tests by name."

setup: ## Install missing Debian packages, and name them first
	@scripts/setup build

build: ## Build .build/release/connectlive
	@scripts/build

install: build ## Install the program, its libraries and the plugin kit in PREFIX=/usr/local
	@scripts/install '$(or $(PREFIX),/usr/local)'

tarball: build ## Pack the program as out/connectlive.tar.gz, which runs without Swift
	@rm -rf out/prefix && mkdir -p out/prefix
	@scripts/install out/prefix --tarball out/connectlive.tar.gz
	@rm -rf out/prefix

demo: setup build ## Install missing packages, build, and show a call
	@.build/release/connectlive demo $(demo_flags)

docs: setup ## Build the API reference: out/docs/index.html
	@scripts/docs

test: ## Install missing packages, build, and run all tests
	@scripts/setup test
	@scripts/test $(if $(FILTER),'$(FILTER)')

soak: ## Run the long tests: about 200 minutes, or STAGES=fuzz for some of them
	@scripts/setup test
	@scripts/soak $(STAGES)

guest: ## Test cameras in a virtual machine: about 16 minutes
	@scripts/setup guest
	@swift build --build-tests
	@Tests/guest/test $(if $(FILTER),'$(FILTER)')
	@$(if $(FILTER),,scripts/last-passed guest)

fuzz: ## Fuzz every parser, one minute each
	@scripts/setup test
	@scripts/fuzz $(if $(SECONDS),--seconds '$(SECONDS)') $(TARGET)

bench: ## Install missing packages, and run the benchmarks: about 20 minutes as root, otherwise 12
	@scripts/setup bench
	@Benchmarks/run $(ARGS)

bench-janus: ## Measure rooms beside those of Debian's janus, as root: 10 minutes, or ARGS='--parts one-room'
	@Benchmarks/run janus $(or $(ARGS),--quick)

check: ## Check import rules, source rules and format
	@scripts/check

format: ## Format the Swift sources
	@swift format format --in-place --parallel $$(scripts/swift-files)

clean: ## Remove build products and the folder out/
	@rm -rf .build out

# connectlive: `make help` says what there is.

# Of make demo: SECONDS=15 LISTEN=0.0.0.0 CODEC=h264 FILE=clip.mp4 OUT=out/demo, and ARGS for any flag besides.
demo_flags = $(if $(SECONDS),--seconds '$(SECONDS)') $(if $(LISTEN),--listen '$(LISTEN)') \
	$(if $(CODEC),--codec '$(CODEC)') $(if $(FILE),--file '$(FILE)') $(if $(OUT),--out '$(OUT)') $(ARGS)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build install tarball demo docs test soak guest fuzz bench check format clean

help: ## Say what there is
	@echo "connectlive: publish cameras and files from Linux into real-time rooms"
	@echo
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'
	@echo
	@echo "make demo takes SECONDS=15 LISTEN=0.0.0.0 CODEC=h264 FILE=clip.mp4 OUT=folder and ARGS='--any flag'."
	@echo "make install takes PREFIX=/usr/local."
	@echo "make fuzz takes SECONDS=60 and TARGET=name."
	@echo "make test and make guest take FILTER='regular expression': only the Swift tests that it matches."

setup: ## Install the Debian packages that are missing, naming them first
	@scripts/setup build

build: ## Build .build/release/connectlive
	@scripts/build

install: build ## Put the program, its libraries and the plugin kit under PREFIX=/usr/local
	@scripts/install '$(or $(PREFIX),/usr/local)'

tarball: build ## Pack them as out/connectlive.tar.gz, which runs without Swift
	@rm -rf out/prefix && mkdir -p out/prefix
	@scripts/install out/prefix --tarball out/connectlive.tar.gz
	@rm -rf out/prefix

demo: setup build ## Set up what is missing, build, and show a call
	@.build/release/connectlive demo $(demo_flags)

docs: setup ## Build the API reference: out/docs/index.html
	@scripts/docs

test: ## Set up what is missing, build, and pass every test
	@scripts/setup test
	@scripts/test $(if $(FILTER),'$(FILTER)')

soak: ## Run what takes too long for make test: about 90 minutes, or STAGES=fuzz
	@scripts/setup test
	@scripts/soak $(STAGES)

guest: ## Try cameras in an emulated machine that has some: about 8 minutes
	@scripts/setup guest
	@swift build --build-tests
	@Tests/guest/test $(if $(FILTER),'$(FILTER)')
	@$(if $(FILTER),,scripts/last-passed guest)

fuzz: ## Feed hostile bytes to every parser, a minute each
	@scripts/setup test
	@scripts/fuzz $(if $(SECONDS),--seconds '$(SECONDS)') $(TARGET)

bench: ## Set up what is missing, and measure
	@scripts/setup bench
	@Benchmarks/run $(ARGS)

check: ## Read the sources: the import law, the other laws, the format
	@scripts/check

format: ## Lay out the Swift sources
	@swift format format --in-place --parallel $$(scripts/swift-files)

clean: ## Remove what was built and written
	@rm -rf .build out

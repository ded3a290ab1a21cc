# Every target sets up its environment first; see tasks.py, which also works without make.
PYTHON ?= python3

.PHONY: demo test soak coverage release-check docs pictures test-integrations test-ci test-newcomer test-lowest install install-others lock-integrations lock-lowest
demo test soak coverage release-check docs pictures test-integrations test-ci test-newcomer test-lowest install install-others lock-integrations lock-lowest:
	@$(PYTHON) tasks.py $@

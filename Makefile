# Every target sets up its environment first; see tasks.py, which also works without make.
PYTHON ?= python3

.PHONY: demo test docs test-integrations install lock-integrations
demo test docs test-integrations install lock-integrations:
	@$(PYTHON) tasks.py $@

# Every target sets up its environment first; see tasks.py, which also works without make.
PYTHON ?= python3

.PHONY: demo test soak docs test-integrations install lock-integrations
demo test soak docs test-integrations install lock-integrations:
	@$(PYTHON) tasks.py $@

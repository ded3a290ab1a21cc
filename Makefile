# Every target sets up .venv first; see tasks.py, which also works without make.
PYTHON ?= python3

.PHONY: demo test install
demo test install:
	@$(PYTHON) tasks.py $@

"""One module per sub-command. Importing one imports typer and nothing heavier; the work is imported when it runs."""

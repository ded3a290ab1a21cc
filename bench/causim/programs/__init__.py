"""Programs from elsewhere, and the folders of files that the paper describes."""

"""Limit of time of a certificate's check, apart from the checkers because a command's help states it."""

VERIFY_SECONDS = 300.0  # seconds of one certificate, unless `calibrant verify --budget` has another

"""Benchmarks are no part of the test run: pytest collects nothing here."""

collect_ignore_glob = ["*.py"]

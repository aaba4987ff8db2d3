"""One schedule: how it ended, its canonical name, its replay token, running it again, and its counterexample.

Knows `model` and no search.
"""

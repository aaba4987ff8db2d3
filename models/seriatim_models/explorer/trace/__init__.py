"""One schedule: its counterexample, replay token, canonical name, shrinking and rendering."""

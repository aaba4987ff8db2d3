"""Large synthetic histories, with and without injected violations."""

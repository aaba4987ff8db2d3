"""Systems that are broken on purpose: described, started, disturbed and judged."""

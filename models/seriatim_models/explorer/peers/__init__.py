"""The same programs under other explorers: `comparison` runs them, `side` and `plain` are what runs in their own
environments."""

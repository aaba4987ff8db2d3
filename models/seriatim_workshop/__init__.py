"""What only `make` reaches, and the wheel leaves out: bench, proofs, mutation testing, cross-checks, real systems."""

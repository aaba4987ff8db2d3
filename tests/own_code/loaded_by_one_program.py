"""What one program of `imports` loads and nothing else does: loaded before, its import would change nothing."""

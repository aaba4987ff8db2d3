"""Many searches, or one very large one, over executors."""

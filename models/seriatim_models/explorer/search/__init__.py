"""Search strategies over schedules: exhaustive, bounded, sampled, and in several processes."""

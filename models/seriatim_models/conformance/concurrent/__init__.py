"""Driving a queue by several clients at once: what all of them see is one history."""

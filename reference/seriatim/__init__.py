"""The reference: what is right. See `seriatim.queue`."""

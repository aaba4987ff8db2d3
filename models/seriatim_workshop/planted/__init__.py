"""A queue that is right, and the mistakes that are planted in it, to measure what `seriatim conform` finds."""

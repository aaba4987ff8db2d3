"""CrossHair on the pure functions of the references."""

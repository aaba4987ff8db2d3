"""How the reference, and anybody else, is broken: histories, properties, explorer, programs."""

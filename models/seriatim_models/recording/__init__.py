"""Turns what the reference does into events: one module for each system, and `base`, which they share.

The reference creates each cell with its kind and owner and marks its operations; see `seriatim.host`. A `Recording` is
a host around another host, which says which events these are. It records them inside the atomic step of the change.
"""

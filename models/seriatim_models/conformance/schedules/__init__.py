"""An implementation in Python under every schedule: a few clients with a few calls each, drawn, judged and made short.

`clients` draws them from what the object can do, `play` is what the explorer runs, `history` makes of an execution
what properties read, `sequential` is the object as one thread sees it, `search` brings them together.
"""

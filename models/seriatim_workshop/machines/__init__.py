"""Generated use of the references, and what judges it: what `make soak`, mutation testing and the tests run.

`plans` says what a generated program is, `SYSTEM/generated_programs` draws those of a system; `concurrent` gives them
to the explorer and `threads` to real threads. `SYSTEM/sequential` compares a reference with a model call by call,
`at_rest` holds what the tables say of a call against the state. The calls are `seriatim_models.machines.SYSTEM.calls`.
"""

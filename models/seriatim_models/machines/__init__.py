"""Machines that make up queues and uses of queues by themselves, and what judges them.

`model` says what a queue is, `sequential` compares the reference with it call by call,
`plans` draws small concurrent programs, which `concurrent` gives to the explorer and `threads` to real threads.
"""

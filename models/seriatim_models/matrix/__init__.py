"""The call matrix: from every small state of a system, every API call beside every other, under every schedule.

The programs of `seriatim_models.programs` are what somebody thought of. Those here are generated: `states` enumerates
the states that a few calls lead to, `cells` lets two calls run concurrently from each of them and judges every
execution by all properties and by the outcome oracle: what clients see at the end must be what they would see if the
calls were made one after the other, in one order or the other. `campaign` runs the cells on several processes and keeps
a journal; `table` adds them up, call against call.
"""

"""Many schedules: the strategies, what they count, and what is searched for in the schedules around a counterexample.

Knows `model` and `trace`. `runner` counts; `dpor`, `sampling` and `bounded` pick schedules; `frontier` and `parallel`
save and distribute a search; `shrink` and `point_of_no_return` start from a violation; `explore` puts all together.
"""

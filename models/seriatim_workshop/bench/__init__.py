"""Side by side with the best: the same work for us and for peers, on one machine, in one run.

`python -m seriatim_workshop.bench PART ...` measures in several rounds, everybody in turn in each,
and writes `build/bench/PART.json` and one page with all parts that have been measured.
A peer that cannot be had is skipped, with the reason; a series that scatters says so.
"""

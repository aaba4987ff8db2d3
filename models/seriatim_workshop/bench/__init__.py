"""Side by side with the best: the same work for us and for peers, on one machine, in one run.

`python -m seriatim_workshop.bench PART ...` measures in several rounds, each participant in turn,
and writes `build/bench/PART.json` and one page with all parts that have been measured.
A peer that cannot be installed is skipped, with the reason; a series with a large spread is marked.
"""

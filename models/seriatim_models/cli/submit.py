"""The command `seriatim` as a file that spark-submit takes: ``spark-submit submit.py audit PATH --engine spark``.

Master and configuration are then spark-submit's. See spec/PIPELINE.md for how the packages get to the executors.
"""

from __future__ import annotations

from seriatim_models.cli import main

if __name__ == "__main__":
    main()

"""From recorded files to findings: ingest, tasks, the two engines, tables."""

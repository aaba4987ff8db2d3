"""From recorded files to findings: ingest, tasks, executors, tables."""

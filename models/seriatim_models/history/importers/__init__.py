"""Recordings in other formats, as qh/1 events: `qh0`, our first format; `jepsen` and `otel`, chosen by `foreign`."""

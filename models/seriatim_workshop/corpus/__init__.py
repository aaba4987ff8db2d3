"""Known bugs of released libraries, run against their own sources: `make corpus`.

`drivers` has a test for each bug, `run` fetches the version with the bug and the repaired one from the package registry
into a cache folder outside the repository, and says whether the first is reported and the second is quiet.
"""

"""The programs of the comparison in the languages of the peers. Python here runs in environments of its own."""

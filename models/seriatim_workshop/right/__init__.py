"""Systems that are right: histories drawn from declared meanings, which no property may report.

`broker` and `clients` are written from the rules alone (AMQP 0-9-1, spec/HISTORY.md) and import no property;
`tests/test_house.py` would not notice, so `tests/properties/test_right_systems.py` does.
`judging` holds their histories against the profiles that they keep.
"""

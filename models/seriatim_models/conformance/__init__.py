"""Driving other implementations with generated commands, recording brokers, and checking both against profiles."""

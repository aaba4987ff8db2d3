"""Mutation testing of the references."""

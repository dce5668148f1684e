"""Trains carma's estimators on measured runs; writes data/models. Not needed to run carma."""

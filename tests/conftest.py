"""Beside it lies `fakes.py`; this file puts the folder on the import path of every test."""

"""Frozen values: relations and geometries. Bad coordinates stop here."""

"""Regions of filters, as an index that a kernel walks."""

"""Patterns of several events that are related in space and near in time."""

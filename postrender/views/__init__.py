"""Findings and plans as people and programs read them."""

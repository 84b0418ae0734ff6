"""Rows one after the other: online control, and a monitor that raises an alarm."""

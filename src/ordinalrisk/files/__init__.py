"""Files of scores: formats, readers, writers, columns, places, and writes that are whole or not at all."""

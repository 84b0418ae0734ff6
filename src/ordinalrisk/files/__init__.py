"""Files of scores: formats, readers, writers, columns, places, and writes that are whole or not at all.

Everything that opens, names, locks or replaces a file belongs here. Work on the rows belongs to ``jobs``, and
the content of a saved calibration to ``saving``.
"""

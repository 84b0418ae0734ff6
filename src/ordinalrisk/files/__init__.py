"""Files of scores: formats, readers, writers, columns, places and atomic writes.

Everything that opens, names, locks or replaces a file belongs here. Work on the rows belongs to ``jobs``, and
the content of a saved calibration to ``saving``.
"""

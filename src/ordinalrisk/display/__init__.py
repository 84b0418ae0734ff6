"""How text and pictures look: tables of text, wording that pages share, colours.

What several rooms print or draw in the same way belongs here. It computes no numbers. Each page, picture or
command has its own room.
"""

"""How text and pictures look: tables of text, wording that pages share, colours.

What several rooms print or draw in the same way belongs here. It takes finished numbers and computes none;
each page, picture or command has its own room.
"""

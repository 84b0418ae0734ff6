"""How text and pictures look: tables of text, wording that pages share, colours."""

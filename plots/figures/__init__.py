"""One file a figure; a new file here is a new figure.

Each defines ORDER (place in the report), TITLE, MISSING (the sentence shown instead when the tables hold nothing for
it), CAPTION(tables) and draw(tables).
"""

"""One module per figure, each with TITLE, data(tables) and draw(data, look)."""

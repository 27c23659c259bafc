"""What searches read: the nearest rows, words, and the columns that ranking asks for."""

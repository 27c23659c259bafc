"""Taking rows out of the files: of every version, line and index that has them."""

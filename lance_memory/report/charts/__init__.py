"""The pictures, as Altair charts: a frame in, a chart out; None where there is nothing to draw."""

"""Files of points and of results in NumPy's .npz: an array for each variable, points along its first axis."""

"""What commands read: systems, models and functions, points, cotangents, tangents and claims."""

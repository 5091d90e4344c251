"""Files, and folders of files, of points and of results in Parquet: columns as in CSV."""

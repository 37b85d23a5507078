"""Tables in files: CSV, TSV, Parquet, Arrow; read and written in batches, whole or not at all."""

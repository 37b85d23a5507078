"""Table files (CSV, TSV, Parquet, Arrow): read and written in batches."""

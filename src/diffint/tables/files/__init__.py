"""Table files (CSV, TSV, Parquet, Arrow, Excel): read and written in batches."""

"""What people see: wording, plots and the report."""

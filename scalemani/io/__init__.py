"""Points in; rows, tables and pictures out."""

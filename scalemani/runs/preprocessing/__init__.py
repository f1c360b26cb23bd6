"""What happens to points before a run knows what they are."""

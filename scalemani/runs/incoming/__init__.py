"""What is done with points before a run knows what they are: computed, made one where they are equal, followed."""

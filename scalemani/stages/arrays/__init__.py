"""Every array of every stage: its description, which `FORMAT.md` is made of, and a reader that says what it returns."""

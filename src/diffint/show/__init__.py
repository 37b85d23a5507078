"""Output for people: texts, plots and the HTML report."""

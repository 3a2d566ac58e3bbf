"""The knowledge of attackers: known columns, priors, accuracies, distances, weights and the population."""

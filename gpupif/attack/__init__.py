"""Who attacks: what attackers know, priors, accuracies, distances, weights and the population."""

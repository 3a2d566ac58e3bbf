"""Small things that every part uses: arguments checked, memory, progress, exact entropies of counts."""

"""What commands share while they use a control plane: connecting, embedding, workers, following a run, questions."""

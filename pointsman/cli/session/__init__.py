"""What commands share while they work with a control plane: connecting, embedding, workers, following a run, questions."""

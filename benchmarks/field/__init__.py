"""Set sizes over a field of real ordinal targets, three models and every method, at equal realised risk."""

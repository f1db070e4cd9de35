"""How long iterations take on other networks: published times, predictions of all methods, sweeps, tables, advice."""

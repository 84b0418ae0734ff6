"""The paper's experiments, run from a clone: loaders, protocol, ResNet, tables, figures and their command.

``python -m reproduction simulated|utkface|diabetic-retinopathy|all`` sets the results beside the published
ones, ``python -m reproduction.rules`` compares the growth rules on the simulation. All of it imports the
library; the library never imports it, and the package does not contain it.
"""

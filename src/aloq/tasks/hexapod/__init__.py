"""A six-legged robot that must cross a line although its legs may be shortened or missing.

model        the robot on the physics engine DART, built from its dimensions
controller   36 parameters to joint angles over a period
damage       the state of each leg
simulate     walking: how far, with which feet on the ground, and whether it fell
elites       the archive from which policies are chosen
search       MAP-Elites, which makes that archive
truth        expected rewards, kept on the disk
task         the tasks themselves

The physics needs the extra `hexapod`; importing these modules does not.
"""

"""Tests the accuracy of scores with kernels whose time is known or measurable otherwise, and other timing protocols."""

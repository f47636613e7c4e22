"""The row group of a method, in the manner of DeepNet Table 1, by where its norms stand."""

from __future__ import annotations

from stabkit.methods.base import Group, Method, defined, sites
from stabkit.methods.wirings import wired

LAYERS = 12
"""Of each stack of the model that is looked at."""


def group_of(method: Method) -> Group:
    """Its own word, or: Dual with several streams; Post-LN where most sums enter a norm; Pre-LN where a norm stands
    before or on the branch; No-LN without."""
    if method.group is not None:
        return method.group
    if len(wired(method.wiring).streams) > 1:
        return "Dual"
    method_sites = sites(*defined(method, LAYERS), 64)
    if 2 * sum(bool(method.norm_out(site)) for site in method_sites) >= len(method_sites):
        return "Post-LN"
    return "Pre-LN" if any(method.norm_in(site) or method.norm_branch(site) for site in method_sites) else "No-LN"

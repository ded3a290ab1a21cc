"""The benchmark's official pool files: how they are recognised, and the name of their row in published tables.

Sizes and SHA-256 digests are those of the frozen release; settings are the labels of the paper's Table A.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class OfficialFile(NamedTuple):
    """One file of the release. In `setting`, -CEx marks the counterexample audit pools."""

    name: str
    num_bytes: int
    digest: str
    setting: str


OFFICIAL_FILES = (
    OfficialFile(
        "cind_a_scm_benchmark240_final_v1.runtime.yaml",
        82955433,
        "c7f37486bf1cd9524bb6d82e293c32caa029a2f9351272ade71e27d77fa69817",
        "Ord-Full",
    ),
    OfficialFile(
        "cind_a_scm_ntopo_benchmark240_final_v1.runtime.yaml",
        85967736,
        "acee26065448c3a2d0d6344b7ead8d385a7c96b1311e9dcc0384655ffc10b47c",
        "Hid-Full",
    ),
    OfficialFile(
        "cind_a_scm_paired50_partial_order_mixed25_2block25_3block_v3.runtime.yaml",
        37546204,
        "ed07cda18084d8a407695196c730094101f766616bb56358289ae3eb47c9d3b9",
        "Block",
    ),
    OfficialFile(
        "cind_a_scm_root_unknown_paired90_ntopo_v1.runtime.yaml",
        33993918,
        "c5a9d06eb396a8ba22a904ef2cf6c0d1a71bbb25736c9e3369f6ec65c0430f2b",
        "Hid-Roots",
    ),
    OfficialFile(
        "cind_a_scm_alt_exp_paired50_ordered_v1.runtime.yaml",
        36571614,
        "0fcd5433d5879e4d582ed273227604d5088eb15444c0369cd80e8e8d5283b76d",
        "Alt-Ord",
    ),
    OfficialFile(
        "cind_a_scm_alt_exp_paired50_ntopo_v1.runtime.yaml",
        38211811,
        "3633006bd5e8c1ea8a1cdce4b774f20f21f695567f17db3ba5367b07a7b204ae",
        "Alt-Hid",
    ),
    OfficialFile(
        "cind_a_scm_ident_audit_ordered_pairs100_v1.runtime.yaml",
        34423348,
        "28c651fb754c7bee379beb2183714e37e7ec5fd4661b8f0c8435b09d72b808ed",
        "Ord-Ext",
    ),
    OfficialFile(
        "cind_a_scm_ident_audit_ntopo_pairs100_v1.runtime.yaml",
        34411076,
        "edc5229f12ff9cc6dccec1ef9c12333237eb6a29bd8d626115d64414323d51ae",
        "Hid-Ext",
    ),
    OfficialFile(
        "cind_a_scm_ident_counterexample_ordered_pairs100_v5.runtime.yaml",
        39121817,
        "f94e3dc6b97c7c15148f7bf192b2a9844dafc5f717f12cfc2dac367ab51f7ff0",
        "Ord-CEx",
    ),
    OfficialFile(
        "cind_a_scm_ident_counterexample_ntopo_pairs100_v5.runtime.yaml",
        36113617,
        "efe9667c2c477cb938216e947d1f371bb6908904e0bed97701cc7a75f710dc28",
        "Hid-CEx",
    ),
)

BY_DIGEST: Mapping[str, OfficialFile] = {file.digest: file for file in OFFICIAL_FILES}
BY_NAME: Mapping[str, OfficialFile] = {file.name: file for file in OFFICIAL_FILES}


def table_setting(digest: str, setting: str) -> str:
    """Return the label of a pool's row: the published one for an official file, else that of its disclosure."""
    return BY_DIGEST[digest].setting if digest in BY_DIGEST else setting


PAIR_SUFFIXES = ("__ALT_EXP", "__ROOT_UNKNOWN", "__PARTIAL_ORDER_2BLOCK", "__PARTIAL_ORDER_3BLOCK")


def latent_of(instance: str) -> str:
    """Return the id of the latent SCM by the release's naming: an instance's id without the suffixes of its variant."""
    for suffix in PAIR_SUFFIXES:
        instance = instance.removesuffix(suffix)
    return instance

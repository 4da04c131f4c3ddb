"""Drafts: what proposes tokens for the target to verify.

To add one: implement ``protocols.Draft`` in a module of this package and add it to the makers in
``tests/contract/test_draft_contract.py``.
"""

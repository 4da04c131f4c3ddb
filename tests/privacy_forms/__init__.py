"""Secrets as files hold them: generated values in hand-written forms, found by nothing but their place and shape."""

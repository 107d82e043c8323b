"""Wire protocols without IO: a request becomes bytes, bytes become chunks and an answer.

The contract of every protocol stands in `base.py`.
"""
